package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
)

// requestPatience bounds one request to the API server, apart from watches.
const requestPatience = 30 * time.Second

// clusterFlags say which cluster and namespace to look at, and as whom, as kubectl's own
// do.
type clusterFlags struct {
	kubeconfig, context, namespace string
	as                             string
	asGroups                       []string
	everywhere                     bool // all namespaces
}

func (c *clusterFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&c.kubeconfig, "kubeconfig", "", "File with the clusters and users. Default: that of the environment variable KUBECONFIG, or ~/.kube/config.")
	fs.StringVar(&c.context, "context", "", "Context of the kubeconfig to use. Default: the current one.")
	fs.StringVarP(&c.namespace, "namespace", "n", "", "Namespace of the WeightedRollout. Default: that of the context.")
	fs.StringVar(&c.as, "as", "", "User to act as. It takes the right to impersonate.")
	fs.StringArrayVar(&c.asGroups, "as-group", nil, "Group to act as a member of; may be repeated. Needs --as.")
	completeBy(cmd, "context", c.contexts)
	completeBy(cmd, "namespace", c.namespaces)
	complete(cmd, "as", nil)
	complete(cmd, "as-group", nil)
}

// bindEverywhere adds the flag for all namespaces.
func (c *clusterFlags) bindEverywhere(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "Look into all namespaces.")
}

func (c *clusterFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = c.namespace
	overrides.AuthInfo.Impersonate = c.as
	overrides.AuthInfo.ImpersonateGroups = c.asGroups
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// cluster reads and writes objects.
type cluster struct {
	namespace string // empty: all
	client    *rest.RESTClient
}

// connect reads the kubeconfig. It talks to nobody.
func (c *clusterFlags) connect() (*cluster, error) {
	if len(c.asGroups) > 0 && c.as == "" {
		return nil, errors.New("--as-group needs --as: name the user as well")
	}
	loaded := c.loader()
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, c.unread(err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	if c.everywhere {
		namespace = ""
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

// aim points a request at a kind's objects in the namespace.
func (c *cluster) aim(request *rest.Request, groupVersion, resource string) *rest.Request {
	return request.AbsPath("/apis/"+groupVersion).NamespaceIfScoped(c.namespace, c.namespace != "").Resource(resource).SetHeader("Accept", "application/json")
}

// read gets an object or a list of the namespace, as JSON, by the path of its kind.
func (c *cluster) read(ctx context.Context, groupVersion, resource, name, fields string, into any) error {
	request := c.aim(c.client.Get(), groupVersion, resource)
	if name != "" {
		request = request.Name(name)
	}
	if fields != "" {
		request = request.Param("fieldSelector", fields)
	}
	return answer(ctx, request, into)
}

// answer sends a request and reads what comes back.
func answer(asked context.Context, request *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(asked, requestPatience)
	defer cancel()
	result := request.Do(ctx)
	err := result.Error() // unlike Raw it reads what the API server says of an error
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsNotFound(err) {
		// Of an object that is missing the API server gives the name.
		if d := status.ErrStatus.Details; d == nil || d.Kind == "" || len(d.Causes) > 0 {
			return errNoSuchKind
		}
	}
	if err != nil && asked.Err() == nil {
		at := request.URL()
		return unreached(at.Scheme+"://"+at.Host, err)
	}
	if err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the API server's answer cannot be read: %w", err)
	}
	return nil
}

// rollout reads one rollout.
func (c *cluster) rollout(ctx context.Context, name string) (*v1alpha1.WeightedRollout, error) {
	wr := &v1alpha1.WeightedRollout{}
	return wr, c.explain(name, c.read(ctx, v1alpha1.GroupVersion.String(), "weightedrollouts", name, "", wr))
}

// explain says in words why a rollout cannot be read.
func (c *cluster) explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNoSuchKind):
		return fmt.Errorf("the cluster does not know the kind WeightedRollout (%s): install the CRD", v1alpha1.GroupVersion)
	case apierrors.IsNotFound(err):
		return &missingError{c.namespace, name}
	}
	return fmt.Errorf("read the WeightedRollout %q in the namespace %q: %w", name, c.namespace, err)
}

// missingError says that there is no such rollout.
type missingError struct{ namespace, name string }

func (e *missingError) Error() string {
	return fmt.Sprintf("there is no WeightedRollout %q in the namespace %q", e.name, e.namespace)
}

// change is what a watch tells of.
type change struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch tells of every change of a kind's objects since a resourceVersion, until the
// stream ends, which the API server sees to after some minutes, or until each says stop.
func (c *cluster) watch(ctx context.Context, groupVersion, resource, fields, version string, each func(change) (stop bool)) error {
	request := c.aim(c.client.Get(), groupVersion, resource).Param("watch", "true").Param("resourceVersion", version).Param("timeoutSeconds", "300")
	if fields != "" {
		request = request.Param("fieldSelector", fields)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return err
	}
	defer stream.Close()
	for decoder := json.NewDecoder(stream); ; {
		var next change
		err := decoder.Decode(&next)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the watch has ended: %w", err)
		case next.Type == "ERROR" || next.Type == "":
			return nil // the version is too old: the object has to be read again
		}
		if each(next) {
			return nil
		}
	}
}
