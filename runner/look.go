package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate"
	"github.com/openshift/update-preflight/collector/health"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/risk"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
)

const ReasonUnknownUpdateKind finding.Reason = "UnknownUpdateKind"

// look is one look at the cluster, for one target or for many: everything is
// read once.
type look struct {
	config Config
	// start is by the cluster's clock, as all times are that are told.
	start    time.Time
	snapshot *snapshot.Cluster

	clusterVersion *configv1.ClusterVersion
	cluster        report.Cluster
	// accepted is everything that was accepted, whether or not it holds.
	accepted []acceptance.Acceptance
}

// look has read nothing yet.
func (c Config) look() *look {
	return &look{
		config:   c.withDefaults(),
		snapshot: snapshot.Of(c.Cluster),
	}
}

// reach finds out whether there is a cluster at all.
func (l *look) reach() error {
	l.step("reading the cluster")
	kubernetes, err := l.config.Cluster.Kubernetes.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("could not reach the API server: %w", err)
	}
	l.cluster.Kubernetes = kubernetes.GitVersion
	l.start = l.now() // only an answer tells how late it is there
	switch late := time.Until(l.start).Round(time.Minute); {
	case late >= worthTelling:
		l.step("the clock of this machine is %s behind the cluster's, which counts", late)
	case late <= -worthTelling:
		l.step("the clock of this machine is %s ahead of the cluster's, which counts", -late)
	}
	return nil
}

// worthTelling is how wrong a clock has to be for its owner to hear of it.
const worthTelling = time.Minute

// now is the time by the cluster's clock.
func (l *look) now() time.Time { return l.config.Now().UTC() }

// read reads what nothing can be said without.
func (l *look) read(ctx context.Context) error {
	var err error
	l.clusterVersion, err = readClusterVersion(ctx, l.snapshot)
	if err != nil {
		return err
	}
	current, err := currentVersion(l.clusterVersion)
	if err != nil {
		return err
	}
	l.cluster.ID = string(l.clusterVersion.Spec.ClusterID)
	l.cluster.Version, l.cluster.Image = current.version, current.image
	l.accepted = slices.Concat(
		l.config.Accepted, acceptance.Named(acceptance.Origin, acceptedRisks(l.clusterVersion)...), acceptance.Named("--accept", l.config.Accept...),
	)
	return nil
}

func readClusterVersion(ctx context.Context, cluster *snapshot.Cluster) (*configv1.ClusterVersion, error) {
	clusterVersion, err := cluster.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("this cluster has no ClusterVersion \"version\", so it is not updated by a cluster-version operator: %w", err)
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

// account is what holds of all that was accepted, for a target of that version.
func (l *look) account(version string) acceptance.Account {
	return acceptance.Judge(l.accepted, acceptance.Question{Target: version, Cluster: l.cluster.ID, Now: l.start})
}

// builtin are the checks that are built in, for one target: they need nothing
// of the release.
func (l *look) builtin(version string) []collector.Source {
	asked, err := update.Parse(l.cluster.Version, version)
	if err != nil {
		return []collector.Source{unjudged("Update", err)}
	}
	ignored := risk.Options{IgnoredAlerts: l.config.IgnoredAlerts, IgnoredNamespaces: l.config.IgnoredNamespaces}
	return collector.Bind(check.Subject{Cluster: l.snapshot, Update: asked, Now: l.start},
		gate.Checks(), risk.Checks(l.config.Monitoring, ignored), health.Checks(l.config.Dependencies))
}

// unjudged is the answer where the versions do not even say which gates
// concern the update: that is known to nobody, so nothing is Ready.
func unjudged(name string, cause error) collector.Source {
	return collector.Known(name, finding.SourceGate, finding.Unknown(ReasonUnknownUpdateKind, "the gates cannot be judged: %v", cause).
		Named(name).
		Remedy("Name the target by its version, or verify its signature so that the version can be read from it."))
}

// oneAtATime makes what any check may call at any time into what a caller can
// handle without locks.
func oneAtATime(progress func(Event)) func(Event) {
	var mutex sync.Mutex
	return func(event Event) {
		mutex.Lock()
		defer mutex.Unlock()
		if progress != nil {
			progress(event)
		}
	}
}

func (l *look) step(format string, args ...any) {
	l.config.Progress(Event{Step: fmt.Sprintf(format, args...)})
}

// answered passes on what one source said.
func (l *look) answered(_ collector.Source, findings []finding.Finding) {
	l.config.Progress(Event{Answered: findings})
}
