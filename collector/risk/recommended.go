package risk

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/monitoring"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const ReasonAPIMissing finding.Reason = "APIMissing"

// Recommended asks whether the update is recommended, and where it is so only
// under conditions, for each of its risks whether it applies: one finding for
// each, by its name.
func Recommended(client *monitoring.Client, options Options) check.Check {
	return check.Check{
		Name: "ClusterVersionRecommendedUpdate", Kind: finding.SourceRisk,
		Concerns: func(u update.Update) bool { return u.Kind() != update.Same },
		Reads:    append(monitoring.Reads(), check.Get("config.openshift.io", "clusterversions", "", "version"), check.Get("config.openshift.io", "infrastructures", "", "cluster")),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			return recommended{cluster: s.Cluster, client: client, update: s.Update, options: options}.findings(ctx)
		},
	}
}

type recommended struct {
	cluster *snapshot.Cluster
	client  *monitoring.Client
	update  update.Update
	options Options
}

func (r recommended) findings(ctx context.Context) ([]finding.Finding, error) {
	version, err := r.cluster.ClusterVersion(ctx)
	if apierrors.IsNotFound(err) {
		return r.noClusterVersion(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("could not read ClusterVersion \"version\": %w", err)
	}
	conditional, err := r.cluster.ConditionalUpdates(ctx)
	if err != nil {
		return nil, err
	}
	target := target{version: version, conditional: conditional, name: r.update.To.String()}
	target.updates = conditional.ByVersion[target.name]
	subjects := target.subjects()
	findings := target.remarks(subjects)
	if len(target.updates) == 0 {
		findings = append(findings, target.unconditional())
	} else {
		findings = append(findings, r.risks(ctx, target, subjects)...)
	}
	objects := []preflight.Object{{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: version.Name}}
	for i := range findings {
		findings[i].Objects = objects
	}
	return findings, ctx.Err()
}

func (r recommended) noClusterVersion(ctx context.Context) ([]finding.Finding, error) {
	topology, err := r.cluster.Topology(ctx)
	if err != nil {
		return nil, fmt.Errorf("there is no ClusterVersion \"version\", and could not read the Infrastructure \"cluster\": %w", err)
	}
	if topology == snapshot.Kubernetes {
		return []finding.Finding{finding.Skipped(ReasonPlainKubernetes, "this cluster has no ClusterVersion, so no update service recommends anything to it")}, nil
	}
	return []finding.Finding{finding.Unknown(ReasonAPIMissing, "ClusterVersion \"version\" does not exist, although this is an OpenShift cluster").
		Remedy("CVO creates it; see whether it is running: oc -n openshift-cluster-version get pods")}, nil
}

// risks judges all risks of the update, in the order of their names.
func (r recommended) risks(ctx context.Context, target target, subjects []subject) []finding.Finding {
	var findings []finding.Finding
	var elsewhere []string
	evaluate := rules{cluster: r.cluster, client: r.client, id: target.version.Spec.ClusterID}
	for _, subject := range subjects {
		if where := r.judgedElsewhere(ctx, subject); where != "" {
			elsewhere = append(elsewhere, fmt.Sprintf("%s (%s)", subject.name, where))
			continue
		}
		findings = append(findings, r.ignore(subject, subject.judge(ctx, evaluate, target.name)))
	}
	if len(elsewhere) > 0 {
		findings = append(findings, leftTo(elsewhere))
	}
	if len(subjects) == 0 {
		findings = append(findings, target.withoutRisks())
	}
	return findings
}

// judgedElsewhere says which other check tells of a risk, if one does. Alerts
// are told of as they are now, if they can be read.
func (r recommended) judgedElsewhere(ctx context.Context, subject subject) string {
	switch {
	case r.update.LeavesMinor() && subject.isGate():
		return "a gate"
	case subject.isAlert():
		if _, err := r.client.Alerts(ctx); err == nil {
			return "an alert"
		}
	}
	return ""
}

// ignore lets an alert that the cluster knows of only warn.
func (r recommended) ignore(subject subject, f finding.Finding) finding.Finding {
	if f.Outcome == preflight.Fail && subject.isAlert() && slices.Contains(r.options.IgnoredAlerts, subject.name) {
		return ignored(f, fmt.Sprintf("the alert %q is ignored by name", subject.name))
	}
	return f
}

// subject is one risk of the update, by name. There is more than one claim
// where there are several entries for the update.
type subject struct {
	name   string
	claims []claim
}

// claim is what there is to a risk in one entry.
type claim struct {
	risk configv1.ConditionalUpdateRisk
	said statement
}

// judge evaluates what the cluster could not tell. Of several claims the worst
// counts.
func (s subject) judge(ctx context.Context, evaluate rules, version string) finding.Finding {
	var findings []finding.Finding
	for _, claim := range s.claims {
		f := claim.judge(ctx, evaluate, version)
		f.Name = accepted("InvalidRiskName", s.name)
		if f.Name != s.name {
			f.Message += fmt.Sprintf(" (ClusterVersion cannot accept the risk by its own name, which is %q)", quote(s.name))
		}
		findings = append(findings, f)
	}
	return slices.MinFunc(findings, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(severity(a), severity(b)), cmp.Compare(a.Message, b.Message))
	})
}

func severity(f finding.Finding) int {
	return slices.Index([]preflight.Outcome{preflight.Fail, preflight.Unknown, preflight.Pass}, f.Outcome)
}

func (c claim) judge(ctx context.Context, evaluate rules, version string) finding.Finding {
	switch c.said.applies {
	case metav1.ConditionTrue:
		return c.applies(version, "by the cluster")
	case metav1.ConditionFalse:
		return c.spares("by the cluster")
	case metav1.ConditionUnknown:
	}
	matches, err := evaluate.match(ctx, c.risk.MatchingRules)
	switch {
	case err != nil:
		return c.unknown(err)
	case matches:
		return c.applies(version, "by this preflight")
	}
	return c.spares("by this preflight")
}
