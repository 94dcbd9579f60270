package runner

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster"
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

// observed is the first stage: the cluster and the requested release.
type observed struct {
	view
	requested Target
	target    update.Release
}

// observe reads the cluster and resolves the target. It waits for CVO only where the target
// depends on it: the run is recorded before any other wait. Its error names all missing
// permissions of the run, before a request that requires one. It creates no objects.
func observe(ctx context.Context, c *cluster.Cluster, r request) (observed, error) {
	if err := r.target.validate(); err != nil {
		return observed{}, err
	}
	seen, err := presentView(ctx, c, r.options, r.needs)
	if err != nil {
		return observed{}, err
	}
	seen.hop, seen.shared = r.hop, r.shared
	if r.hop != nil {
		return observed{view: seen, requested: r.target, target: r.hop.target}, nil
	}
	resolved, err := r.target.resolve(seen.version)
	if err != nil || r.target.Latest {
		seen = seen.awaitStatus(ctx) // a change of the channel changes the known releases
		resolved, err = r.target.resolve(seen.version)
	}
	if err != nil {
		return observed{}, err
	}
	return observed{view: seen, requested: r.target, target: resolved}, nil
}

// newView reads what every judgement is based on, when CVO has processed the last change of
// ClusterVersion.
func newView(ctx context.Context, c *cluster.Cluster, options Options) (view, error) {
	v, err := presentView(ctx, c, options, access.Needs{})
	if err != nil {
		return view{}, err
	}
	v = v.awaitStatus(ctx)
	if ctx.Err() != nil {
		return view{}, fmt.Errorf("interrupted before CVO had processed the last change of ClusterVersion: %w", context.Cause(ctx))
	}
	return v, nil
}

// presentView is newView without waiting for CVO.
func presentView(ctx context.Context, c *cluster.Cluster, options Options, needs access.Needs) (view, error) {
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
	return v.described(kubernetes.GitVersion)
}

// unreachable is the error of an API server that cannot be reached. One that rejects the
// credentials keeps its own: the program says what to do.
func unreachable(err error) error {
	if apierrors.IsUnauthorized(err) {
		return err
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
