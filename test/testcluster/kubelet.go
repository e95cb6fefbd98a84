package testcluster

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weightedrollout/weightedrollout/test/testbed"
)

// kubeletConfig turns off what a node for a few minutes, on a machine that is used for
// other things, does not need: no pod is evicted because its disk is full.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %[1]s
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://%[2]s
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
makeIPTablesUtilChains: false
podLogsDir: %[3]s
resolvConf: %[4]s
volumePluginDir: %[5]s
serializeImagePulls: false
kubeAPIQPS: 200
kubeAPIBurst: 400
`

// startKubelet starts the kubelet in the node's namespaces, and kube-proxy, and waits
// until pods can run.
func (c *Cluster) startKubelet(ctx context.Context) error {
	kubelet, err := c.program("kubelet")
	if err != nil {
		return err
	}
	nodeConfig, err := c.writeKubeconfig(nodeUser)
	if err != nil {
		return err
	}
	proxyConfig, err := c.writeKubeconfig(proxyUser)
	if err != nil {
		return err
	}
	text := fmt.Sprintf(kubeletConfig, nodeAddress, containerdSocket, c.path("logs/pods"), c.path("resolv.conf"), c.path("volume-plugins"))
	if err := os.WriteFile(c.path("kubelet.yaml"), []byte(text), 0o644); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	if err := os.WriteFile(c.path("resolv.conf"), []byte("# The cluster has no DNS.\n"), 0o644); err != nil {
		return fmt.Errorf("configuring the kubelet: %w", err)
	}
	if _, err = c.supervisor.Start(ctx, testbed.Command{
		Name: "kubelet", Binary: "nsenter",
		Args: c.enteringNode(kubelet,
			"--config="+c.path("kubelet.yaml"), "--kubeconfig="+nodeConfig, "--root-dir="+c.path("kubelet"),
			"--hostname-override="+NodeName, "--node-ip="+nodeAddress, "--cert-dir="+c.path("kubelet-pki")),
	}); err != nil {
		return err
	}
	if _, err = c.start(ctx, "kube-proxy", nil,
		"--kubeconfig="+proxyConfig, "--hostname-override="+NodeName, "--proxy-mode=nftables",
		"--cluster-cidr="+podRange, "--conntrack-max-per-core=0"); err != nil {
		return err
	}
	return c.waitNode(ctx)
}

// waitNode waits until pods can run.
func (c *Cluster) waitNode(ctx context.Context) error {
	seen := "it has not registered"
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Err(); err != nil {
			return false, err
		}
		node := &corev1.Node{}
		if err := c.Client.Get(ctx, client.ObjectKey{Name: NodeName}, node); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				seen = condition.Reason + ": " + condition.Message
				return condition.Status == corev1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the node to be ready (%s): %w", seen, err)
	}
	return nil
}
