package testbed

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// NodeName is the node that the played kubelet plays. Pods without a node are in no
// EndpointSlice, so there has to be one.
const NodeName = "testbed"

// podRetry is when a pod is looked at again after a request for it has failed.
const podRetry = 100 * time.Millisecond

// PodState is what becomes of a pod.
type PodState int

const (
	// PodReady pods run and become ready.
	PodReady PodState = iota
	// PodUnready pods run, and do not become ready or are not so any more.
	PodUnready
	// PodCrashing pods crash again and again.
	PodCrashing
)

// Kubelet plays the scheduler and the kubelet of one node: it says that pods run and
// are ready, without running anything, and lets the ones that are deleted go at once.
// Its methods may be called from several goroutines.
type Kubelet struct {
	client     kubernetes.Interface
	pods       corelisters.PodLister
	queue      workqueue.TypedDelayingInterface[types.NamespacedName]
	readyAfter time.Duration
	log        *log.Logger
	addresses  podAddresses // used by the worker only

	mu    sync.Mutex
	rules []podRule
}

type podRule struct {
	match func(*corev1.Pod) bool
	state PodState
}

// StartKubelet starts a played kubelet, for all pods, which makes a pod ready at the
// given time after it has started. It ends with the bed. What it could not do is in the
// bed's logs.
func (b *Bed) StartKubelet(ctx context.Context, readyAfter time.Duration) (*Kubelet, error) {
	client, err := kubernetes.NewForConfig(b.Config)
	if err != nil {
		return nil, fmt.Errorf("starting the played kubelet: %w", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: NodeName}}
	if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("starting the played kubelet: creating its node: %w", err)
	}
	logFile, err := os.Create(filepath.Join(b.LogDir(), "played-kubelet.log"))
	if err != nil {
		return nil, fmt.Errorf("starting the played kubelet: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	k := &Kubelet{
		client: client, pods: factory.Core().V1().Pods().Lister(), readyAfter: readyAfter,
		queue: workqueue.NewTypedDelayingQueue[types.NamespacedName](),
		log:   log.New(logFile, "", log.LstdFlags),
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(k.handler()); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the played kubelet: %w", err), logFile.Close())
	}
	// It outlives the context that bounds its start.
	running, cancel := context.WithCancel(context.Background())
	factory.Start(running.Done())
	var worker sync.WaitGroup
	worker.Go(func() { k.run(running) })
	end := sync.OnceFunc(func() {
		cancel()
		k.queue.ShutDown()
		worker.Wait()
		factory.Shutdown()
		_ = logFile.Close() // it is for reading by people
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	b.played = append(b.played, end)
	return k, nil
}

// Set says what becomes of the pods that match, those to come included. The rule that
// was set last wins; without any, pods become ready.
func (k *Kubelet) Set(state PodState, match func(*corev1.Pod) bool) error {
	k.mu.Lock()
	k.rules = append(k.rules, podRule{match, state})
	k.mu.Unlock()
	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	for _, pod := range pods {
		k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return nil
}

func (k *Kubelet) state(pod *corev1.Pod) PodState {
	k.mu.Lock()
	defer k.mu.Unlock()
	state := PodReady
	for _, rule := range k.rules {
		if rule.match(pod) {
			state = rule.state
		}
	}
	return state
}

func (k *Kubelet) handler() cache.ResourceEventHandler {
	add := func(object any) {
		// A deletion that was missed comes wrapped, and is nothing to act on.
		if pod, ok := object.(*corev1.Pod); ok {
			k.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add}
}

func (k *Kubelet) run(ctx context.Context) {
	for {
		key, stopped := k.queue.Get()
		if stopped {
			return
		}
		if err := k.sync(ctx, key); err != nil && ctx.Err() == nil {
			if !apierrors.IsConflict(err) {
				k.log.Printf("pod %s: %v", key, err)
			}
			k.queue.AddAfter(key, podRetry)
		}
		k.queue.Done(key)
	}
}

// sync does the next thing that is to be done for a pod. What it writes comes back as
// an event.
func (k *Kubelet) sync(ctx context.Context, key types.NamespacedName) error {
	pod, err := k.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		k.addresses.free(key)
		return nil
	}
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		gone := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
		err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, gone)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if pod.Spec.NodeName == "" {
		return k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: NodeName},
		}, metav1.CreateOptions{})
	}
	address, err := k.addresses.of(key)
	if err != nil {
		return err
	}
	return k.writeStatus(ctx, pod, address)
}

func (k *Kubelet) writeStatus(ctx context.Context, pod *corev1.Pod, address string) error {
	now := metav1.Now()
	started := now
	if pod.Status.StartTime != nil {
		started = *pod.Status.StartTime
	}
	state := k.state(pod)
	if left := k.readyAfter - now.Sub(started.Time); state == PodReady && left > 0 {
		state = PodUnready
		k.queue.AddAfter(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, left)
	}
	next := pod.DeepCopy()
	next.Status = podStatus(pod, state, address, started, now)
	if equality.Semantic.DeepEqual(pod.Status, next.Status) {
		return nil
	}
	_, err := k.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}
