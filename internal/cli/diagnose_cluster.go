package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags say which cluster and namespace to look at, as kubectl's own do.
type clusterFlags struct {
	kubeconfig, context, namespace string
}

func (c *clusterFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "File with the clusters and users. Default: that of the environment variable KUBECONFIG, or ~/.kube/config.")
	fs.StringVar(&c.context, "context", "", "Context of the kubeconfig to use. Default: the current one.")
	fs.StringVarP(&c.namespace, "namespace", "n", "", "Namespace of the WeightedRollout. Default: that of the context.")
	complete(cmd, "context", nil)
	complete(cmd, "namespace", nil)
}

// cluster reads objects of one namespace.
type cluster struct {
	namespace string
	client    rest.Interface
}

// connect reads the kubeconfig. It talks to nobody.
func (c *clusterFlags) connect() (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.UserAgent = "kubectl-weightedrollout"
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	return &cluster{namespace: namespace, client: client}, nil
}

// errNoSuchKind says that the cluster does not serve a kind.
var errNoSuchKind = errors.New("the cluster does not serve this kind")

// read gets an object or a list of the namespace, as JSON, by the path of its kind.
func (c *cluster) read(ctx context.Context, groupVersion, resource, name, fields string, into any) error {
	request := c.client.Get().AbsPath("/apis/"+groupVersion).Namespace(c.namespace).Resource(resource).SetHeader("Accept", "application/json")
	if name != "" {
		request = request.Name(name)
	}
	if fields != "" {
		request = request.Param("fieldSelector", fields)
	}
	result := request.Do(ctx)
	err := result.Error() // unlike Raw it reads what the API server says of an error
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsNotFound(err) {
		// Of an object that is missing the API server gives the name.
		if d := status.ErrStatus.Details; d == nil || d.Kind == "" || len(d.Causes) > 0 {
			return errNoSuchKind
		}
	}
	if err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
