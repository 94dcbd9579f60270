package runner

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

// request is the target and the options of a run, and the permissions that it needs.
type request struct {
	target  Target
	options Options
	needs   access.Needs
	// hop is set for a later update of a path, and shared for each update of one.
	hop    *hop
	shared *sharedResults
}

// view is the cluster as a run finds it, for one target or many.
type view struct {
	cluster  *cluster.Cluster
	options  Options
	progress *serial
	// start is by the cluster's clock, as all times of a report are.
	start    time.Time
	snapshot *snapshot.Cluster
	version  *configv1.ClusterVersion
	about    report.Cluster
	// accepted are all acceptances, whether or not they hold.
	accepted []acceptance.Acceptance
	// hop is nil for an update from the present release.
	hop *hop
	// shared are the results of a path; nil for a run without a path.
	shared *sharedResults
}

// observed is the first stage: the cluster and the requested release.
type observed struct {
	view
	requested Target
	target    update.Release
}

// observe reads the cluster and resolves the target. Its error names all missing
// permissions of the run, before a request that requires one. It creates no objects.
func observe(ctx context.Context, c *cluster.Cluster, r request) (observed, error) {
	if err := r.target.validate(); err != nil {
		return observed{}, err
	}
	seen, err := newView(ctx, c, r.options, r.needs)
	if err != nil {
		return observed{}, err
	}
	seen.hop, seen.shared = r.hop, r.shared
	if r.hop != nil {
		return observed{view: seen, requested: r.target, target: r.hop.target}, nil
	}
	resolved, err := r.target.resolve(seen.version)
	if err != nil {
		return observed{}, err
	}
	return observed{view: seen, requested: r.target, target: resolved}, nil
}

// newView reads what every judgement is based on.
func newView(ctx context.Context, c *cluster.Cluster, options Options, needs access.Needs) (view, error) {
	if err := options.validate(); err != nil {
		return view{}, err
	}
	options = options.withDefaults(c)
	v := view{cluster: c, options: options, progress: newSerial(options.Observer, options.Logger), snapshot: snapshot.Of(c)}
	v.progress.step("reading the cluster")
	kubernetes, err := c.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		return view{}, unreachable(err)
	}
	v.start = c.Now() // a response has set the clock
	v.reportClock()
	if _, err := options.Fixed.At(v.start); err != nil {
		return view{}, &BadInputError{Err: err}
	}
	if err := needs.Check(ctx, c.Kubernetes.AuthorizationV1()); err != nil {
		return view{}, err
	}
	if v.version, err = readClusterVersion(ctx, v.snapshot); err != nil {
		return view{}, err
	}
	if v, err = v.awaitStatus(ctx); err != nil {
		return view{}, err
	}
	current, err := currentRelease(v.version)
	if err != nil {
		return view{}, err
	}
	v.about = report.Cluster{ID: string(v.version.Spec.ClusterID), Version: current.Version, Image: current.Image, Kubernetes: kubernetes.GitVersion}
	v.accepted = slices.Concat(options.Accepted, acceptance.Named(acceptance.Origin, acceptedRisks(v.version)...), options.Accept)
	return v, nil
}

// unreachable distinguishes an API server that rejects the credentials from one
// that cannot be reached.
func unreachable(err error) error {
	if apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the API server rejects the credentials: log in again: %w", err)
	}
	return fmt.Errorf("could not reach the API server: %w", err)
}

// reportClock reports a difference between the clocks: all times are by the
// cluster's.
func (v view) reportClock() {
	const worthReporting = time.Minute
	switch late := time.Until(v.start).Round(time.Minute); {
	case late >= worthReporting:
		v.progress.step("the clock of this machine is %s behind the cluster's, which is used", late)
	case late <= -worthReporting:
		v.progress.step("the clock of this machine is %s ahead of the cluster's, which is used", -late)
	}
}

func readClusterVersion(ctx context.Context, cluster *snapshot.Cluster) (*configv1.ClusterVersion, error) {
	clusterVersion, err := cluster.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this cluster has no ClusterVersion \"version\", so no cluster-version operator updates it: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	return clusterVersion, nil
}

func acceptedRisks(clusterVersion *configv1.ClusterVersion) []string {
	var names []string
	if desired := clusterVersion.Spec.DesiredUpdate; desired != nil {
		for _, risk := range desired.AcceptRisks {
			names = append(names, risk.Name)
		}
	}
	return names
}

// remaining is how much time the run has.
func (v view) remaining() time.Duration { return v.deadline().Sub(v.cluster.Now()) }

func (v view) deadline() time.Time { return v.start.Add(v.options.Timeout) }

// accounts are the acceptances that hold for a target of that version.
func (v view) accounts(version string) acceptance.Account {
	return acceptance.Judge(v.accepted, acceptance.Scope{Target: version, Cluster: v.about.ID, Now: v.start})
}

// kind is that of the update to a version; empty for a version that cannot be
// compared.
func (v view) kind(version string) string { return update.KindOf(v.from(), version) }

// from is the version that the update starts from.
func (v view) from() string {
	if v.hop != nil {
		return v.hop.before().Version
	}
	return v.about.Version
}

// subject is what built-in checks are run on; the error is about versions that
// cannot be compared.
func (v view) subject(version string) (check.Subject, error) {
	requested, err := update.Parse(v.from(), version)
	return check.Subject{Cluster: v.snapshot, Update: requested, Now: v.start, Later: v.hop != nil}, err
}

// builtin are the checks for one target that need nothing of its release.
func (v view) builtin(version string) []collector.Source {
	subject, err := v.subject(version)
	if err != nil {
		return []collector.Source{notComparable(err)}
	}
	if v.hop != nil {
		return collector.Bind(subject, v.laterChecks())
	}
	return collector.Bind(subject, v.checks())
}

// checks are the built-in checks of an update from the present release.
func (v view) checks() []check.Check {
	ignored := risk.Options{IgnoredAlerts: v.options.IgnoredAlerts, IgnoredNamespaces: v.options.IgnoredNamespaces}
	return slices.Concat(gate.Checks(v.options.Fixed), risk.Checks(v.options.Monitoring, ignored), health.Checks(v.options.Dependencies))
}

// reasonUnknownUpdateKind is reported when the versions of the cluster and the
// target cannot be compared.
//
// Cause: a version is not a semantic version, or the version of the target is not
// known because its release could not be verified.
//
// Remedy: name the target by its version, or fix the verification of its signature.
const reasonUnknownUpdateKind finding.Reason = "UnknownUpdateKind"

// nameUpdate names the finding in place of all gates where the versions cannot be
// compared.
const nameUpdate = "Update"

// notComparable stands for all built-in checks: which of them apply depends on
// the versions.
func notComparable(cause error) collector.Source {
	return collector.Known(nameUpdate, finding.SourceGate, finding.Unknown(reasonUnknownUpdateKind, "the gates cannot be evaluated: %v", cause).
		Named(nameUpdate).
		Remedy("Name the target by its version, or fix the verification of its signature, from which the version is read."))
}
