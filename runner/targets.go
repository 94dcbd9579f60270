package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/verdict"
)

const ReasonNoUpdates finding.Reason = "NoUpdates"

// parallelTargets bounds the targets that are judged at one time. What they
// need is read once for all of them; the rest is computing.
const parallelTargets = 8

// Targets answers for every available and every conditional update that the
// cluster knows, newest first, from gates, risks and health alone: no release
// is read, and none of its checks is run. With a version in config.Target it
// answers for that one only. Errors are as with Run.
func Targets(ctx context.Context, config Config) (report.Targets, error) {
	if err := config.validate(); err != nil {
		return report.Targets{}, err
	}
	if config.Target.Latest || config.Target.Image != "" {
		return report.Targets{}, badInput("one target is chosen by its version: --to VERSION")
	}
	seen := config.look()
	ctx, cancel := context.WithTimeout(ctx, seen.config.Timeout)
	defer cancel()
	if err := seen.reach(); err != nil {
		return report.Targets{}, err
	}
	if err := seen.read(ctx); err != nil {
		return report.Targets{}, err
	}
	candidates, err := choose(candidates(seen.clusterVersion), config.Target.Version)
	if err != nil {
		return report.Targets{}, err
	}
	seen.step("judging targets: %d", len(candidates))
	told, err := seen.judgeAll(ctx, candidates)
	if err != nil {
		return report.Targets{}, err
	}
	if len(candidates) == 0 {
		told.Findings = append(told.Findings, report.TargetFinding{Finding: noUpdates(seen.clusterVersion), Targets: []string{}})
	}
	return told, nil
}

// candidates are the updates that ClusterVersion lists, newest first; those
// whose version cannot be compared come last. One that is listed twice, as CVO
// lists a conditional update that it recommends, is one.
func candidates(clusterVersion *configv1.ClusterVersion) []report.Candidate {
	var all []report.Candidate
	for _, available := range clusterVersion.Status.AvailableUpdates {
		all = append(all, report.Candidate{
			Version: available.Version, Image: available.Image, URL: string(available.URL), Available: true, Recommended: string(metav1.ConditionTrue),
		})
	}
	for _, conditional := range clusterVersion.Status.ConditionalUpdates {
		candidate := report.Candidate{
			Version: conditional.Release.Version, Image: conditional.Release.Image, URL: string(conditional.Release.URL),
			Conditional: true, Recommended: string(metav1.ConditionUnknown),
		}
		if condition := meta.FindStatusCondition(conditional.Conditions, "Recommended"); condition != nil {
			candidate.Recommended = string(condition.Status)
		}
		same := slices.IndexFunc(all, func(other report.Candidate) bool {
			return other.Version == candidate.Version && other.Image == candidate.Image
		})
		if same < 0 {
			all = append(all, candidate)
			continue
		}
		candidate.Available = all[same].Available
		all[same] = candidate
	}
	slices.SortStableFunc(all, newestFirst)
	return all
}

func newestFirst(a, b report.Candidate) int {
	first, errA := semver.Parse(a.Version)
	second, errB := semver.Parse(b.Version)
	switch {
	case errA == nil && errB == nil:
		return cmp.Or(second.Compare(first), cmp.Compare(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return cmp.Or(cmp.Compare(b.Version, a.Version), cmp.Compare(a.Image, b.Image))
}

// choose leaves the targets of that version; no version leaves all.
func choose(all []report.Candidate, version string) ([]report.Candidate, error) {
	if version == "" {
		return all, nil
	}
	var known []release
	var chosen []report.Candidate
	for _, candidate := range all {
		known = append(known, release{version: candidate.Version})
		if candidate.Version == version {
			chosen = append(chosen, candidate)
		}
	}
	if len(chosen) == 0 {
		return nil, badInput("the cluster knows no update to %q; it knows %s", version, listVersions(known))
	}
	return chosen, nil
}

// judgeAll gives each candidate its verdict.
func (l *look) judgeAll(ctx context.Context, candidates []report.Candidate) (report.Targets, error) {
	told := report.Targets{
		APIVersion: report.APIVersion, Kind: report.TargetsKind, ToolVersion: l.config.ToolVersion, Time: l.start.Format(time.RFC3339),
		Cluster: l.cluster, Channel: l.clusterVersion.Spec.Channel, Targets: candidates, Findings: []report.TargetFinding{},
	}
	found := newLedger(candidates)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallelTargets)
	for i := range candidates {
		group.Go(func() error {
			asked, findings := l.judge(limited, &candidates[i])
			found.enter(i, asked, findings)
			return limited.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return report.Targets{}, fmt.Errorf("not all targets could be judged in time: %w", err)
	}
	told.Findings = found.findings()
	for _, f := range acceptance.Review(found.asked...) {
		told.Findings = append(told.Findings, report.TargetFinding{Finding: f, Targets: []string{}})
	}
	return told, nil
}

// judge gives one candidate its verdict, and returns what led to it.
func (l *look) judge(ctx context.Context, candidate *report.Candidate) (acceptance.Asked, []finding.Finding) {
	collection := collector.Collect(ctx, l.builtin(candidate.Version), func(collector.Source, []finding.Finding) {})
	account := l.account(candidate.Version)
	policy := verdict.Policy{Accepted: account.Accepted(), Force: l.config.Force}
	candidate.UpdateKind = l.kind(candidate.Version)
	candidate.Expected = expectation(collection)
	var findings []finding.Finding
	candidate.Verdict, findings = verdict.Fold(collection.Findings, candidate.Expected, policy)
	request := cvo.Request{Version: candidate.Version}
	candidate.CVO = l.ask(request, policy, findings)
	counting := slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool {
		return f.Bypass == nil && !f.Open()
	})
	return acceptance.Asked{Account: account, Findings: slices.Clip(counting), NoJobs: true}, findings
}

// noUpdates says why there is nothing to judge.
func noUpdates(clusterVersion *configv1.ClusterVersion) finding.Finding {
	f := finding.Warn(ReasonNoUpdates, "the cluster knows of no update in channel %q", clusterVersion.Spec.Channel).
		Named("NoUpdates").
		From(finding.SourceRisk).
		Remedy("Choose another channel: oc adm upgrade channel. Or ask for a release by its image: oc preflight run --to-image PULLSPEC").
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: clusterVersion.Name})
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == configv1.RetrievedUpdates && condition.Status != configv1.ConditionTrue {
			f.Reason = "UpdatesNotRetrieved"
			f.Message += fmt.Sprintf("; they could not be retrieved: %s: %s", condition.Reason, condition.Message)
		}
	}
	return f
}
