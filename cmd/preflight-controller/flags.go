package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/pflag"

	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/controller"
)

// The times of leader election with which OpenShift's components tolerate 60 seconds
// without an API server (openshift/enhancements CONVENTIONS.md).
const (
	leaseDuration = 137 * time.Second
	renewDeadline = 107 * time.Second
	retryPeriod   = 26 * time.Second
)

// flags are the arguments of the program.
type flags struct {
	kubeconfig, namespace               string
	ahead                               int
	delay, timeout                      time.Duration
	cacheDirectory, prometheus          string
	healthAddress                       string
	metricsAddress, metricsCertificates string
	leaderElect                         bool
	lease, renew, retry                 time.Duration
	verbosity                           int
}

// parse reads the arguments; errors and the help are written to out.
func parse(args []string, out io.Writer) (flags, error) {
	var f flags
	set := pflag.NewFlagSet("preflight-controller", pflag.ContinueOnError)
	set.SetOutput(out)
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "File with the connection to the cluster. Default: KUBECONFIG, or the ServiceAccount of the pod.")
	set.StringVar(&f.namespace, "namespace", "openshift-update-preflight", "Namespace of the Lease of the leader.")
	set.IntVar(&f.ahead, "ahead", 3, fmt.Sprintf("How many offered updates to check before one is selected, at most %d; 0 for none.", controller.MaxAhead))
	set.DurationVar(&f.delay, "ahead-delay", 10*time.Minute, "Limit of the random delay of a run ahead.")
	set.DurationVar(&f.timeout, "timeout", runner.DefaultTimeout, "Time limit of each run.")
	set.StringVar(&f.cacheDirectory, "cache-dir", "", "Directory for the content of releases. Default: none is kept.")
	set.StringVar(&f.prometheus, "prometheus", "", "URL of a Prometheus or Thanos querier with the metrics and alerts of the cluster. Default: the monitoring of the cluster.")
	set.StringVar(&f.healthAddress, "health-probe-bind-address", ":8081", "Address of /healthz and /readyz; 0 for none.")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", ":8443", "Address of /metrics over HTTPS; 0 for none.")
	set.StringVar(&f.metricsCertificates, "metrics-cert-dir", "", "Directory with tls.crt and tls.key of /metrics. Default: a certificate that is signed by itself.")
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
	return f, f.validate()
}

func (f flags) validate() error {
	switch {
	case f.ahead < 0 || f.ahead > controller.MaxAhead:
		return fmt.Errorf("--ahead is %d; it must be 0 to %d", f.ahead, controller.MaxAhead)
	case f.delay < 0:
		return fmt.Errorf("--ahead-delay is %s; it must not be negative", f.delay)
	case f.timeout <= 0:
		return fmt.Errorf("--timeout is %s; it must be positive", f.timeout)
	case f.leaderElect && f.namespace == "":
		return errors.New("--leader-elect needs a --namespace")
	}
	return nil
}
