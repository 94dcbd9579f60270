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
	"path/filepath"
	"strings"
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
)

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
	if err := controller.Needs().And(chosen.Needs()).And(f.hosted.needs()).And(f.signingNeeds()).And(f.page.needs()).Check(ctx, reached.Kubernetes.AuthorizationV1()); err != nil {
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
	run := runner.Options{Limits: runner.Limits{Timeout: f.timeout}, Baseline: f.baseline(), Hooks: runner.Hooks{Logger: logger, ToolVersion: program.Version()}}
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
		Ahead: f.ahead, Run: run, Console: shown, JudgePause: controller.JudgePause, After: followup.Standard(), Monitoring: find, Signals: signals, Logger: logger, Registry: metrics.Registry,
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
