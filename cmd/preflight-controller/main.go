// Command preflight-controller runs the preflights of selected and offered updates by
// itself, in the cluster.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimelog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/openshift/update-preflight/cmd/internal/program"
	"github.com/openshift/update-preflight/cmd/internal/signingkey"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/cache"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/runner/trigger/followup"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the next signal stops the process at once
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const (
	// endTimeout bounds the end of the program: a run in progress is released for the next
	// leader.
	endTimeout = time.Minute
	// readyTimeout bounds a request to /readyz.
	readyTimeout = time.Second
)

// run runs the controller until ctx is done, or uninstalls it. It logs to log; out has
// what was uninstalled.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	f, err := parse(args, os.Environ(), log)
	if errors.Is(err, pflag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.Level(-f.verbosity)}))
	program.LogTo(logger, f.verbosity)
	runtimelog.SetLogger(logr.FromSlogHandler(logger.Handler()))
	config, err := f.config()
	if err != nil {
		return err
	}
	reached, err := cluster.Connect(config, "preflight-controller/"+program.Version())
	if err != nil {
		return err
	}
	if f.uninstall {
		return uninstall(ctx, reached, out)
	}
	if err := f.checkNamespace(config.BearerTokenFile); err != nil {
		return err
	}
	return f.serve(ctx, reached, logger)
}

// checkNamespace returns an error in a pod of another namespace than --namespace. OLM installs into any: without the roles
// and the Lease there, the pod would be ready and never lead. TokenFile is the token by which it connects; in a pod, the
// kubelet writes the namespace beside it.
func (f flags) checkNamespace(tokenFile string) error {
	if tokenFile == "" || f.namespace == "" { // without leader election, no namespace is needed
		return nil
	}
	own, err := os.ReadFile(filepath.Join(filepath.Dir(tokenFile), "namespace"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the token of a kubeconfig
	}
	if err == nil && strings.TrimSpace(string(own)) != f.namespace {
		err = fmt.Errorf("the pod runs in the namespace %q, and --namespace is %q: install the controller in that namespace", own, f.namespace)
	}
	return err
}

// serve runs the controller until ctx is done.
func (f flags) serve(ctx context.Context, reached *cluster.Cluster, logger *slog.Logger) error {
	chosen, err := guard.Choose(f.signals...)
	if err != nil {
		return fmt.Errorf("--signal: %w", err)
	}
	if err := controller.Needs().And(chosen.Needs()).And(f.hosted.needs()).And(f.signingNeeds()).And(f.page.needs()).Check(ctx,
		reached.Kubernetes.AuthorizationV1()); err != nil {
		return err
	}
	options, err := f.options(reached, logger, chosen)
	if err != nil {
		return err
	}
	if f.signingSecret != "" {
		if options.Key, err = signingkey.Secret(ctx, reached.Kubernetes.CoreV1(), f.namespace, f.signingSecret); err != nil {
			return fmt.Errorf("--signing-secret: %w", err)
		}
	}
	m, err := f.manager(reached)
	if err != nil {
		return err
	}
	if err := controller.Add(m, reached, options); err != nil {
		return err
	}
	if err := errors.Join(f.hosted.addTo(m, reached, options, logger), f.page.addTo(m, reached, options)); err != nil {
		return err
	}
	return m.Start(ctx)
}

// signingNeeds are the permissions to read the key that signs.
func (f flags) signingNeeds() access.Needs {
	if f.signingSecret == "" {
		return access.Needs{}
	}
	return access.Needs{Required: []access.Request{{Verb: "get", Resource: "secrets", Namespace: f.namespace, Name: f.signingSecret}}}
}

func (f flags) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("the connection to the cluster is not configured: %w", err)
	}
	return config, nil
}

func (f flags) options(reached *cluster.Cluster, logger *slog.Logger, chosen guard.Choice) (controller.Options, error) {
	run := runner.Options{
		Limits: runner.Limits{Timeout: f.timeout}, Baseline: f.baseline(),
		Hooks: runner.Hooks{Logger: logger, ToolVersion: program.Version()},
	}
	if f.cacheDirectory != "" {
		opened, err := cache.Open(f.cacheDirectory, cache.DefaultLimit)
		if err != nil {
			return controller.Options{}, fmt.Errorf("--cache-dir: %w", err)
		}
		run.Access.Cache = opened
	}
	find, err := monitoring.Querier{Config: reached.Config(), Dynamic: reached.Dynamic}.Locate(f.prometheus)
	if err != nil {
		return controller.Options{}, fmt.Errorf("--prometheus: %w", err)
	}
	if f.prometheus != "" {
		run.Origin.Monitoring = runner.Identity(f.prometheus)
	}
	signals, err := guard.NewSet(reached.Dynamic, chosen, program.Version(), reached.Now)
	if err != nil {
		return controller.Options{}, err
	}
	shown, err := console.New(reached, f.console.downloads, program.Version(), logger)
	if err != nil {
		return controller.Options{}, fmt.Errorf("--cli-downloads: %w", err)
	}
	return controller.Options{
		Ahead: f.ahead, Run: run, Console: shown, JudgePause: controller.JudgePause, After: followup.Standard(), Monitoring: find,
		Signals: signals, Logger: logger, Registry: metrics.Registry,
		Delay: func() time.Duration { return rand.N(f.delay + 1) }, //nolint:gosec // it spreads load
	}, nil
}

// baseline is how the runs store the state of the cluster.
func (f flags) baseline() baselinestore.Names {
	switch {
	case f.noBaseline:
		return baselinestore.None
	case f.redactBaseline:
		return baselinestore.Digests
	}
	return baselinestore.Plain
}

// manager holds the Lease, the cache and the servers of the program. It has the limits of the cluster's clients: by
// the default of client-go, five requests a second, hundreds of objects that others made delay a verdict.
func (f flags) manager(reached *cluster.Cluster) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(configv1.Install(scheme), corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	caches, err := controller.Cache()
	if err != nil {
		return nil, err
	}
	secured, watch, err := f.metricsTLS(reached.Kubernetes)
	if err != nil {
		return nil, err
	}
	m, err := manager.New(reached.Config(), manager.Options{
		Scheme: scheme, Cache: caches,
		HealthProbeBindAddress: f.healthAddress,
		Metrics: server.Options{
			BindAddress: f.metricsAddress, SecureServing: true, CertDir: f.metricsCertificates, TLSOpts: secured,
		},
		LeaderElection: f.leaderElect, LeaderElectionID: "update-preflight", LeaderElectionNamespace: f.namespace,
		LeaderElectionReleaseOnCancel: true, // the program ends right after the manager
		LeaseDuration:                 &f.lease, RenewDeadline: &f.renew, RetryPeriod: &f.retry,
		GracefulShutdownTimeout: new(endTimeout),
	})
	if err != nil {
		return nil, err
	}
	if watch != nil {
		err = m.Add(watch)
	}
	synced := func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), readyTimeout)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the cluster has not been read yet")
		}
		return nil
	}
	return m, errors.Join(err, m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("cache", synced))
}

// metricsTLS configures the server of /metrics. The caller must run watch unless it is nil.
func (f flags) metricsTLS(client kubernetes.Interface) (options []func(*tls.Config), watch manager.Runnable, err error) {
	options = []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }}
	clients := metricsClients{commonName: f.metricsClient}
	switch f.metricsClientCA {
	case "":
		return options, nil, nil
	case clusterCA:
		cluster, err := newClusterAuthorities(client)
		if err != nil {
			return nil, nil, fmt.Errorf("--metrics-client-ca: %w", err)
		}
		clients.authorities, watch = cluster.pool, cluster
	default:
		file, err := newFileAuthorities(f.metricsClientCA)
		if err != nil {
			return nil, nil, fmt.Errorf("--metrics-client-ca: %w", err)
		}
		clients.authorities = file.pool
	}
	return append(options, clients.require), watch, nil
}

// The times of leader election. After the end of a leader that did not release the Lease the
// next one leads in less than 45 seconds: it sees the last renewal after at most 2.2 retryPeriods
// (client-go's JitterFactor), waits for leaseDuration, and tries again after at most 2.2 retryPeriods,
// 6.6, 30 and 6.6 seconds. There are never two, since a leader ends renewDeadline after its last renewal. OpenShift's
// components take 137, 107 and 26 seconds to tolerate 60 seconds without an API server
// (openshift/enhancements CONVENTIONS.md); this one may restart then, since the record has what
// its run needs to continue.
const (
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	retryPeriod   = 3 * time.Second
)

// clusterCA is the value of --metrics-client-ca for the CAs of the cluster.
const clusterCA = "cluster"

type flags struct {
	kubeconfig, namespace               string
	ahead                               int
	delay, timeout                      time.Duration
	cacheDirectory, prometheus          string
	healthAddress                       string
	metricsAddress, metricsCertificates string
	metricsClientCA, metricsClient      string
	signals                             []string
	signingSecret                       string
	noBaseline, redactBaseline          bool
	leaderElect, uninstall              bool
	lease, renew, retry                 time.Duration
	verbosity                           int
	hosted                              hostedFlags
	console                             consoleFlags
	page                                pageFlags
}

// variablePrefix begins the names of the environment variables that stand for flags. It is not UPDATE_PREFLIGHT_:
// Kubernetes gives pods such variables for the Service update-preflight.
const variablePrefix = "PREFLIGHT_CONTROLLER_"

// parse reads the arguments, and the variables of flags without an argument; errors and the help are written to out.
func parse(args, environment []string, out io.Writer) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("preflight-controller", pflag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&f.kubeconfig, "kubeconfig", "",
		"File with the connection to the cluster. Default: KUBECONFIG, or the ServiceAccount of the pod.")
	set.StringVar(&f.namespace, "namespace", "openshift-update-preflight", "Namespace of the Lease of the leader.")
	set.IntVar(&f.ahead, "ahead", 3, fmt.Sprintf("How many offered updates to check before one is selected, at most %d; 0 for none.",
		runplan.MaxAhead))
	set.DurationVar(&f.delay, "ahead-delay", 10*time.Minute, "Limit of the random delay of a run ahead.")
	set.DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of each run.")
	set.StringVar(&f.cacheDirectory, "cache-dir", "", "Directory for the content of releases. Default: none is kept.")
	set.StringVar(&f.prometheus, "prometheus", "",
		"URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 for none.")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443", "Address of /metrics over HTTPS; 0 for none.")
	set.StringVar(&f.metricsCertificates, "metrics-cert-dir", "",
		"Directory with tls.crt and tls.key of /metrics. Default: a certificate that is signed by itself.")
	set.StringVar(&f.metricsClientCA, "metrics-client-ca", "",
		fmt.Sprintf("CAs that sign client certificates: %q for the CAs of the cluster (ConfigMap %s/%s), or a file, which is read again "+
			"when it changes. /metrics then requires one with the name of --metrics-client. Default: /metrics requires no client certificate.",
			clusterCA, clientCANamespace, clientCAConfigMap))
	set.StringVar(&f.metricsClient, "metrics-client", "system:serviceaccount:openshift-monitoring:prometheus-k8s",
		"Common name of the client certificate that may read /metrics.")
	set.StringSliceVar(&f.signals, "signal", nil, fmt.Sprintf(
		"Signal by which an unmodified CVO honors the verdicts: %s. May be repeated. Others are removed. Default: none.",
		strings.Join(guard.Choices(), ", ")))
	set.StringVar(&f.signingSecret, "signing-secret", "",
		"Secret of the namespace with cosign.key and cosign.password, with which the verdicts of the UpdatePreflights of administrators "+
			"are signed. Default: they are not signed.")
	set.BoolVar(&f.noBaseline, "no-baseline", false,
		"Do not store the state of the cluster, with which the state after an update is compared.")
	set.BoolVar(&f.redactBaseline, "redact-baseline", false,
		"Store digests in place of the names of users' namespaces and of what is in them.")
	f.hosted.add(set)
	f.console.add(set)
	f.page.add(set)
	set.BoolVar(&f.uninstall, "uninstall", false, "Remove all signals, the ClusterOperator, the published verdicts and the objects "+
		"for the console, print them, and end. The controller must have ended.")
	set.BoolVar(&f.leaderElect, "leader-elect", true, "Act only while holding the Lease of the leader.")
	set.DurationVar(&f.lease, "leader-elect-lease-duration", leaseDuration, "How long others wait after the last renewal of the Lease.")
	set.DurationVar(&f.renew, "leader-elect-renew-deadline", renewDeadline, "How long the leader tries to renew the Lease before it ends.")
	set.DurationVar(&f.retry, "leader-elect-retry-period", retryPeriod, "Time between two attempts to acquire or renew the Lease.")
	set.IntVarP(&f.verbosity, "v", "v", 0, "Log level: 4 logs the steps of a run, 6 each request to the cluster as well, 8 with its content.")
	if err := set.Parse(args); err != nil {
		return flags{}, err
	}
	if set.NArg() > 0 {
		return flags{}, fmt.Errorf("the program takes no argument, but got %q", set.Arg(0))
	}
	if err := setFromEnvironment(set, environment); err != nil {
		return flags{}, err
	}
	return f, f.validate()
}

// setFromEnvironment sets each flag that has no argument by its variable: --ahead-delay by PREFLIGHT_CONTROLLER_AHEAD_DELAY.
// OLM keeps the variables of a Subscription, and reverts arguments.
func setFromEnvironment(set *pflag.FlagSet, environment []string) error {
	for _, each := range environment {
		variable, value, _ := strings.Cut(each, "=")
		name, found := strings.CutPrefix(variable, variablePrefix)
		if !found {
			continue
		}
		flag := set.Lookup(strings.ToLower(strings.ReplaceAll(name, "_", "-")))
		if flag == nil {
			return fmt.Errorf("the environment variable %s stands for no flag", variable)
		}
		if flag.Changed {
			continue
		}
		if err := set.Set(flag.Name, value); err != nil {
			return fmt.Errorf("the environment variable %s: %w", variable, err)
		}
	}
	return nil
}

func (f flags) validate() error {
	switch {
	case f.ahead < 0 || f.ahead > runplan.MaxAhead:
		return fmt.Errorf("--ahead is %d; it must be 0 to %d", f.ahead, runplan.MaxAhead)
	case f.delay < 0:
		return fmt.Errorf("--ahead-delay is %s; it must not be negative", f.delay)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout is %s; it must be positive", f.timeout)
	case f.metricsClientCA != "" && f.metricsClient == "":
		return errors.New("--metrics-client-ca needs a --metrics-client")
	case f.uninstall && len(f.signals) > 0:
		return errors.New("--uninstall removes all signals, and --signal must not be given")
	case f.leaderElect && f.namespace == "":
		return errors.New("--leader-elect needs a --namespace")
	case f.noBaseline && f.redactBaseline:
		return errors.New("--no-baseline and --redact-baseline are mutually exclusive")
	case f.signingSecret != "" && f.namespace == "":
		return errors.New("--signing-secret needs a --namespace")
	}
	if _, err := guard.Choose(f.signals...); err != nil {
		return fmt.Errorf("--signal: %w", err)
	}
	return errors.Join(f.hosted.validate(), f.console.validate(), f.page.validate())
}

// consoleFlags are about the web console of OpenShift.
type consoleFlags struct{ downloads string }

func (c *consoleFlags) add(set *pflag.FlagSet) {
	set.StringVar(&c.downloads, "cli-downloads", "", "https:// URL with the released files of oc-preflight, in a directory vX.Y.Z "+
		"for each version. The web console links to the files of this version. Default: no links.")
}

func (c consoleFlags) validate() error {
	if c.downloads == "" {
		return nil
	}
	if _, err := console.Address(c.downloads); err != nil {
		return fmt.Errorf("--cli-downloads: %w", err)
	}
	return nil
}
