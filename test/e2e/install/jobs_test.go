package install

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// tokenOf returns a token of a service account, which so has the rights that were
// installed for it.
func tokenOf(ctx context.Context, bed *testbed.Bed, namespace, account string) (string, error) {
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{}
	if err := bed.Client.SubResource("token").Create(ctx, sa, request); err != nil {
		return "", fmt.Errorf("get a token of service account %s/%s: %w", namespace, account, err)
	}
	return request.Status.Token, nil
}

// kubeconfigOf writes a kubeconfig with such a token and returns the file's path.
func kubeconfigOf(ctx context.Context, bed *testbed.Bed, namespace, account string) (string, error) {
	token, err := tokenOf(ctx, bed, namespace, account)
	if err != nil {
		return "", err
	}
	const name = "bed"
	file := clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: bed.Config.Host, CertificateAuthorityData: bed.Config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{account: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: account, Namespace: namespace}},
		CurrentContext: name,
	}
	path := filepath.Join(bed.Dir, account+".kubeconfig")
	return path, clientcmd.WriteToFile(file, path)
}

// jobs plays the Jobs of a namespace: what each would run in a pod runs here, with the
// token of the Job's service account.
type jobs struct {
	bed *testbed.Bed
	// ended are called when the command of a Job has ended well, before the cluster knows.
	ended []func(job string) error

	mu   sync.Mutex
	said map[string]string // what each Job printed, by name
}

// playJobs plays them until the test ends.
func playJobs(t *testing.T, bed *testbed.Bed, ended ...func(job string) error) *jobs {
	t.Helper()
	j := &jobs{bed: bed, ended: ended, said: map[string]string{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := j.once(ctx); err != nil && ctx.Err() == nil {
				t.Errorf("playing the Jobs: %v", err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(pollEvery):
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	return j
}

// output is what a Job has printed.
func (j *jobs) output(name string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.said[name]
}

func (j *jobs) once(ctx context.Context) error {
	var list batchv1.JobList
	if err := j.bed.Client.List(ctx, &list, client.InNamespace(system)); err != nil {
		return err
	}
	for i := range list.Items {
		if job := &list.Items[i]; len(job.Status.Conditions) == 0 && job.DeletionTimestamp.IsZero() {
			if err := j.run(ctx, job); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *jobs) run(ctx context.Context, job *batchv1.Job) error {
	pod := job.Spec.Template.Spec
	c := pod.Containers[0]
	if len(c.Command) != 1 || c.Command[0] != "/manager" {
		return fmt.Errorf("job %s runs %v, want /manager", job.Name, c.Command)
	}
	kubeconfig, err := kubeconfigOf(ctx, j.bed, job.Namespace, pod.ServiceAccountName)
	if err != nil {
		return err
	}
	began := metav1.Now()
	out, err := command(ctx, nil, "manager", append(c.Args, "--kubeconfig="+kubeconfig)...)
	j.mu.Lock()
	j.said[job.Name] = out
	j.mu.Unlock()
	if err != nil {
		return fmt.Errorf("job %s: %w", job.Name, err)
	}
	for _, f := range j.ended {
		if err := f(job.Name); err != nil {
			return fmt.Errorf("after job %s: %w", job.Name, err)
		}
	}
	ended := metav1.Now()
	condition := func(kind batchv1.JobConditionType) batchv1.JobCondition {
		return batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: ended, LastProbeTime: ended}
	}
	job.Status = batchv1.JobStatus{
		StartTime: &began, CompletionTime: &ended, Succeeded: 1,
		Conditions: []batchv1.JobCondition{condition(batchv1.JobSuccessCriteriaMet), condition(batchv1.JobComplete)},
	}
	return client.IgnoreNotFound(j.bed.Client.Status().Update(ctx, job))
}

// startManager runs what the pods of the Deployment would run, with their flags and
// their service account's rights.
func startManager(t *testing.T, bed *testbed.Bed, deployed []string, account string) *testbed.Manager {
	t.Helper()
	kubeconfig, err := kubeconfigOf(t.Context(), bed, system, account)
	if err != nil {
		t.Fatal(err)
	}
	flags := []string{"--leader-election-namespace=" + system}
	for _, flag := range deployed {
		// The bed chooses free ports, since no pod has an address of its own here.
		if !strings.Contains(flag, "-bind-address=") {
			flags = append(flags, flag)
		}
	}
	m, err := bed.StartManager(t.Context(), testbed.ManagerOptions{Kubeconfig: kubeconfig, Metrics: true, Args: flags})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// scrape reads the controller's metrics as a service account, as a Prometheus does.
func scrape(t *testing.T, bed *testbed.Bed, m *testbed.Manager, namespace, account string) (string, error) {
	t.Helper()
	token, err := tokenOf(t.Context(), bed, namespace, account)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+m.MetricsAddress+"/metrics", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // it makes a certificate for itself
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	return string(text), err
}
