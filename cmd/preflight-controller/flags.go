package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/guard"
	"github.com/openshift/update-preflight/runner/trigger/runplan"
)

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
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "File with the connection to the cluster. Default: KUBECONFIG, or the ServiceAccount of the pod.")
	set.StringVar(&f.namespace, "namespace", "openshift-update-preflight", "Namespace of the Lease of the leader.")
	set.IntVar(&f.ahead, "ahead", 3, fmt.Sprintf("How many offered updates to check before one is selected, at most %d; 0 for none.", runplan.MaxAhead))
	set.DurationVar(&f.delay, "ahead-delay", 10*time.Minute, "Limit of the random delay of a run ahead.")
	set.DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of each run.")
	set.StringVar(&f.cacheDirectory, "cache-dir", "", "Directory for the content of releases. Default: none is kept.")
	set.StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 for none.")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443", "Address of /metrics over HTTPS; 0 for none.")
	set.StringVar(&f.metricsCertificates, "metrics-cert-dir", "", "Directory with tls.crt and tls.key of /metrics. Default: a certificate that is signed by itself.")
	set.StringVar(&f.metricsClientCA, "metrics-client-ca", "", fmt.Sprintf("CAs that sign client certificates: %q for those of the cluster (ConfigMap %s/%s), or a file, which is read again when it changes. /metrics then requires one with the name of --metrics-client. Default: /metrics requires no client certificate.", clusterCA, clientCANamespace, clientCAConfigMap))
	set.StringVar(&f.metricsClient, "metrics-client", "system:serviceaccount:openshift-monitoring:prometheus-k8s", "Common name of the client certificate that may read /metrics.")
	set.StringSliceVar(&f.signals, "signal", nil, fmt.Sprintf("Signal by which an unmodified CVO honors the verdicts: %s. May be repeated. Others are removed. Default: none.", strings.Join(guard.Choices(), ", ")))
	set.StringVar(&f.signingSecret, "signing-secret", "", "Secret of the namespace with cosign.key and cosign.password, with which the verdicts of the UpdatePreflights of administrators are signed. Default: they are not signed.")
	set.BoolVar(&f.noBaseline, "no-baseline", false, "Do not store the state of the cluster, with which the state after an update is compared.")
	set.BoolVar(&f.redactBaseline, "redact-baseline", false, "Store digests in place of the names of users' namespaces and of what is in them.")
	f.hosted.add(set)
	f.console.add(set)
	f.page.add(set)
	set.BoolVar(&f.uninstall, "uninstall", false, "Remove all signals, the ClusterOperator, the published verdicts and the objects for the console, print them, and end. The controller must have ended.")
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
