// Command manager runs the WeightedRollout controller.
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/weightedrollout/weightedrollout/api/v1alpha1"
	"github.com/weightedrollout/weightedrollout/controllers"
	"github.com/weightedrollout/weightedrollout/internal/metrics"
	"github.com/weightedrollout/weightedrollout/internal/route"
)

// What the program was made from. The linker sets it; commit and date (of the commit)
// for releases only.
var version, commit, date = "dev", "", ""

type options struct {
	metricsAddress  string
	metricsSecure   bool
	probeAddress    string
	leaderElect     bool
	leaderNamespace string
	namespaces      string
	evidence        evidenceOptions
	notify          notifyOptions
	confirm         string
	controllers     string
	workers         int
	showVersion     bool
	zap             zap.Options
}

func (o *options) bind(fs *flag.FlagSet) {
	fs.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443", "Address that the controller's own metrics are served on; 0 turns them off.")
	fs.BoolVar(&o.metricsSecure, "metrics-secure", true, "Serve the metrics by HTTPS, to those whom the API server lets get them (nonResourceURL /metrics), and the evidence of rollouts (nonResourceURL /evidence/NAMESPACE/NAME).")
	fs.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Address that /healthz and /readyz are served on; 0 turns them off.")
	fs.BoolVar(&o.leaderElect, "leader-elect", true, "Work only while holding the lease, so that of several replicas one works.")
	fs.StringVar(&o.leaderNamespace, "leader-election-namespace", "", "Namespace of the lease. Default: the one that the controller runs in.")
	fs.StringVar(&o.namespaces, "namespaces", "", "Comma-separated namespaces to look after. Default: all.")
	o.evidence.bind(fs)
	o.notify.bind(fs)
	fs.StringVar(&o.confirm, "confirm", "generation", "What confirms a route: generation (Accepted and ResolvedRefs are True for the generation that was written) or accepted (they are True; for gateways that report no generation).")
	fs.StringVar(&o.controllers, "gateway-controllers", "", "Comma-separated controllers of gateways, as GatewayClasses name them, whose confirmation counts where Gateways or GatewayClasses cannot be read. Default: anybody's.")
	fs.IntVar(&o.workers, "workers", 8, "Number of rollouts that are worked on at the same time.")
	fs.BoolVar(&o.showVersion, "version", false, "Print the version and exit.")
	o.zap.BindFlags(fs)
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == standDownName {
		os.Exit(standDown(os.Args[2:], os.Stdout, os.Stderr))
	}
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr))
}

// start runs the controller and returns the exit code.
func start(args []string, out, errOut io.Writer) int {
	var o options
	fs := flag.NewFlagSet("manager", flag.ContinueOnError)
	fs.SetOutput(errOut)
	o.bind(fs)
	config.RegisterFlags(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return usageExitCode
	}
	if err := checkNoCommand(fs.Args()); err != nil {
		_, _ = fmt.Fprintln(errOut, "error:", err)
		return usageExitCode
	}
	if o.showVersion {
		_, _ = fmt.Fprintln(out, versionText())
		return 0
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.zap)))
	if err := run(o); err != nil {
		ctrl.Log.Error(err, "the manager cannot go on")
		return 1
	}
	return 0
}

// versionText is what --version prints.
func versionText() string {
	if commit == "" {
		return version
	}
	return fmt.Sprintf("%s (commit %s, %s)", version, commit, date)
}

func run(o options) error {
	confirm, err := route.ParseConfirmMode(o.confirm)
	if err != nil {
		return fmt.Errorf("--confirm: %w", err)
	}
	gatewayControllers, err := readControllers(o.controllers)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	telemetryConfig, err := o.evidence.config()
	if err != nil {
		return err
	}
	limit, err := limitMemory()
	if err != nil {
		ctrl.Log.Info("the limit of memory cannot be read, so the garbage collector does not keep to it: set GOMEMLIMIT", "problem", err.Error())
	}
	telemetryConfig.Memory = memoryOfAnswers(limit)
	counters := metrics.NewCounters()
	telemetryConfig.Evaluated = counters.Evaluated
	sender, err := o.notify.sender(counters)
	if err != nil {
		return err
	}
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	wakeups := controllers.NewWakeups(ctx)
	collector, err := newCollector(ctx, mgr, telemetryConfig, wakeups)
	if err != nil {
		return err
	}
	scales, err := newScales(mgr)
	if err != nil {
		return err
	}
	r := &controllers.Reconciler{
		Client: mgr.GetClient(), Scales: scales, Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("weightedrollout"),
		Evidence: collector, Metrics: counters, Announce: announcer(sender), Clock: clock.RealClock{}, Confirm: confirm, GatewayControllers: gatewayControllers, Namespaces: o.namespaceList(),
	}
	if err := r.SetupWithManager(ctx, mgr, wakeups, o.workers); err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	if err := errors.Join(serveEvidence(mgr, o, collector), addMetrics(mgr, counters, collector), addSender(mgr, sender), addProbes(mgr)); err != nil {
		return err
	}
	ctrl.Log.Info("starting", "version", version, "confirm", confirm.String(), "prometheus", o.evidence.address != "", "notifications", sender != nil, "memoryLimit", limit)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("run the manager: %w", err)
	}
	return nil
}

func newManager(o options) (ctrl.Manager, error) {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (set --kubeconfig or KUBECONFIG): %w", err)
	}
	// The API server's own priority and fairness is the limiter: a client-side one
	// would let a rollback wait its turn.
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, managerOptions(o))
	if err != nil {
		return nil, fmt.Errorf("set up the manager: %w", err)
	}
	return mgr, nil
}

// newScales returns a client that finds out by itself which kinds the cluster serves: a group
// that is served by others, and does not answer, holds up nothing else.
func newScales(mgr ctrl.Manager) (client.SubResourceClientConstructor, error) {
	c, err := client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme()})
	if err != nil {
		return nil, fmt.Errorf("make a client for scales: %w", err)
	}
	return c, nil
}

func addProbes(mgr ctrl.Manager) error {
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the liveness probe: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("add the readiness probe: %w", err)
	}
	return nil
}

func managerOptions(o options) ctrl.Options {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(gatewayv1.Install(scheme))
	utilruntime.Must(discoveryv1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(autoscalingv1.AddToScheme(scheme))
	utilruntime.Must(autoscalingv2.AddToScheme(scheme))

	metrics := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: o.metricsSecure}
	if o.metricsSecure {
		metrics.FilterProvider = unlessByUID(filters.WithAuthenticationAndAuthorization)
		// HTTP/2 is off, so that its rapid-reset weaknesses do not concern us.
		metrics.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}
	}
	cacheOptions := cache.Options{DefaultTransform: controllers.Trim}
	if namespaces := o.namespaceList(); len(namespaces) > 0 {
		cacheOptions.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			cacheOptions.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return ctrl.Options{
		Scheme: scheme, Metrics: metrics, HealthProbeBindAddress: o.probeAddress, Cache: cacheOptions,
		LeaderElection: o.leaderElect, LeaderElectionID: "weightedrollout.dev",
		LeaderElectionNamespace: o.leaderNamespace, LeaderElectionReleaseOnCancel: true,
	}
}

// namespaceList are the namespaces to look at; empty for all.
func (o options) namespaceList() []string { return splitNames(o.namespaces) }

// splitNames reads a comma-separated list.
func splitNames(list string) []string {
	var names []string
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}
