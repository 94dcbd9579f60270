// Package targets answers: which of the updates that the cluster knows may it take?
//
// [Judge] evaluates each by gates, risks and health: no release is read, and no check of a release is run, so no
// target is proven to be Ready.
package targets

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/builtin"
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gate/clusterversion"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/report"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/scene/departure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/updateplan/duration"
	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	nameNoUpdates = finding.NewName("NoUpdates", "A cluster that knows no update.")

	reasonNoUpdates = finding.NewReason("NoUpdates", finding.Explanation{
		Meaning: "The cluster knows no update.",
		Cause:   "The channel has no update from the cluster's version.",
		Remedy:  "Choose another channel with `oc adm upgrade channel CHANNEL`, or name a release by its image.",
	})
	reasonUpdatesNotRetrieved = finding.NewReason("UpdatesNotRetrieved", finding.Explanation{
		Meaning: "The cluster knows no update because it could not retrieve the update graph.",
		Cause:   "The update service is unreachable, or does not know the channel or the version.",
		Remedy:  "Check \"oc adm upgrade\", or name a release by its image.",
	})
)

// parallelTargets bounds the targets that are evaluated at one time. Their common input is read once for all of
// them.
const parallelTargets = 8

// Judge evaluates every available and conditional update that the cluster knows, newest first; with a version,
// only that target, even if the cluster does not list it. An *input.Error is about a text that is not a version,
// or about the release that the cluster runs ([scene.InstalledError]). The time of the scene bounds it.
func Judge(ctx context.Context, s scene.Scene, version string) (report.Targets, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Remaining())
	defer cancel()
	candidates, err := choose(candidates(s.Version), version)
	if err == nil && version != "" {
		err = scene.Installed(s.Version, update.Release{Version: candidates[0].Version, Image: candidates[0].Image})
	}
	if err != nil {
		return report.Targets{}, err
	}
	s.Step("evaluating %s", words.Count(len(candidates), "target"))
	judged, err := judgeAll(ctx, s, candidates)
	if err != nil {
		return report.Targets{}, err
	}
	if len(candidates) == 0 {
		judged.Findings = append(judged.Findings, report.TargetFinding{Finding: noUpdates(s.Version), Targets: []string{}})
	}
	return judged, nil
}

// Needs returns the permissions to open a scene for Judge, and to evaluate it.
func Needs() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "get", Group: "config.openshift.io", Resource: "clusterversions", Name: "version"},
	}}.And(builtin.Needs())
}

// candidates are the updates that ClusterVersion lists, newest first; those whose
// version cannot be compared come last. An update that is listed twice, as CVO
// lists a conditional update that it recommends, is one candidate.
func candidates(clusterVersion *configv1.ClusterVersion) []report.Candidate {
	var all []report.Candidate
	for _, available := range clusterVersion.Status.AvailableUpdates {
		all = append(all, report.Candidate{
			Version: available.Version, Image: available.Image, URL: string(available.URL), Available: true,
			Recommended: string(metav1.ConditionTrue),
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

// choose selects the targets of that version; no version selects all. A version that the
// cluster does not list is a target without an image.
func choose(all []report.Candidate, version string) ([]report.Candidate, error) {
	if version == "" {
		return all, nil
	}
	var known []update.Release
	var chosen []report.Candidate
	for _, candidate := range all {
		known = append(known, update.Release{Version: candidate.Version})
		if candidate.Version == version {
			chosen = append(chosen, candidate)
		}
	}
	if len(chosen) > 0 {
		return chosen, nil
	}
	if _, err := semver.Parse(version); err != nil {
		return nil, input.Errorf("the cluster knows no update to %q, which is not a version; it knows %s", version, scene.ListVersions(known))
	}
	return []report.Candidate{{Version: version}}, nil
}

// judgeAll gives each candidate its verdict.
func judgeAll(ctx context.Context, s scene.Scene, candidates []report.Candidate) (report.Targets, error) {
	judged := report.Targets{
		APIVersion: report.APIVersion, Kind: report.TargetsKind, ToolVersion: s.Settings.ToolVersion, Time: words.Time(s.Start),
		Cluster: s.About, Channel: s.Version.Spec.Channel, Targets: candidates, Findings: []report.TargetFinding{},
	}
	found := newTargetFindings(candidates)
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(parallelTargets)
	for i := range candidates {
		group.Go(func() error {
			judged, findings := judgeTarget(limited, s, &candidates[i])
			found.add(i, judged, findings)
			return limited.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return report.Targets{}, fmt.Errorf("could not evaluate all targets in time: %w", err)
	}
	judged.Findings = found.all()
	for _, f := range acceptance.Review(found.judged...) {
		judged.Findings = append(judged.Findings, report.TargetFinding{Finding: f, Targets: []string{}})
	}
	return judged, nil
}

// judgeTarget gives one candidate its verdict, and returns what led to it.
func judgeTarget(ctx context.Context, s scene.Scene, candidate *report.Candidate) (acceptance.Target, []finding.Finding) {
	present := departure.Present()
	policy := departure.Policy(s, present, candidate.Version)
	collected := collector.Collect(ctx, departure.Sources(s, present, candidate.Version),
		func(collector.Source, []finding.Finding) {}).Merged(policy.Accepted)
	candidate.UpdateKind = departure.Kind(s, present, candidate.Version)
	candidate.Expected, candidate.Duration = collected.Expectation(), duration.Of(ctx, s, update.Kind(candidate.UpdateKind))
	var findings []finding.Finding
	candidate.Verdict, findings = departure.Fold(collected.Findings, candidate.Expected, policy)
	candidate.CVO = s.Predict(cvo.Request{Version: candidate.Version}, policy, findings)
	if candidate.Verdict.Decision == verdict.Ready && !policy.Force && !narrows(s.Settings.Judgement) {
		candidate.Actions = s.StartOf(update.Release{Version: candidate.Version, Image: candidate.Image})
	}
	counting := slices.DeleteFunc(slices.Clone(findings), func(f finding.Finding) bool { return f.Effect == finding.EffectNone })
	return acceptance.Target{Account: s.Account(candidate.Version), Findings: slices.Clip(counting), NoJobs: true}, findings
}

// narrows reports whether a judgement leaves something out.
func narrows(judgement scene.Judgement) bool {
	return len(judgement.IgnoredAlerts)+len(judgement.IgnoredNamespaces) > 0 || judgement.Fixed.String() != ""
}

// noUpdates is the finding of a cluster that knows no update.
func noUpdates(clusterVersion *configv1.ClusterVersion) finding.Finding {
	known := "the cluster has no channel, and knows no update"
	if channel := clusterVersion.Spec.Channel; channel != "" {
		known = fmt.Sprintf("the cluster knows no update in channel %q", channel)
	}
	f := finding.Warn(reasonNoUpdates, "%s", known)
	for _, condition := range clusterVersion.Status.Conditions {
		if condition.Type == configv1.RetrievedUpdates && condition.Status != configv1.ConditionTrue {
			f = finding.Warn(reasonUpdatesNotRetrieved, "%s; the update graph could not be retrieved: RetrievedUpdates is %s", known,
				words.Condition(condition.Status, condition.Reason, condition.Message))
		}
	}
	return f.Named(nameNoUpdates).From(finding.SourceRisk).
		Remedy("Choose another channel, or name a version, which is evaluated even if it is not listed.").Do(
		clusterversion.Channels(clusterVersion)...).
		About(finding.Object{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterVersion", Name: clusterVersion.Name})
}

// targetFindings has every finding once, with the targets that it is about: most
// findings are the same for all of five hundred targets.
type targetFindings struct {
	candidates []report.Candidate

	mutex  sync.Mutex
	byKey  map[[sha256.Size]byte]*sharedFinding
	judged []acceptance.Target
}

// sharedFinding is one finding of some targets, given by index.
type sharedFinding struct {
	// own is worded for the first of them, general for all.
	own, general finding.Finding
	targets      []int
}

func newTargetFindings(candidates []report.Candidate) *targetFindings {
	return &targetFindings{
		candidates: candidates, byKey: map[[sha256.Size]byte]*sharedFinding{},
		judged: make([]acceptance.Target, len(candidates)),
	}
}

func (t *targetFindings) add(target int, judged acceptance.Target, findings []finding.Finding) {
	version := t.candidates[target].Version
	entries := make([]*sharedFinding, len(findings))
	keys := make([][sha256.Size]byte, len(findings))
	for i, f := range findings {
		f.BlockedTargets = nil
		entries[i] = &sharedFinding{own: f, general: generalize(f, version)}
		keys[i] = key(entries[i].general)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.judged[target] = judged
	for i, key := range keys {
		if t.byKey[key] == nil {
			t.byKey[key] = entries[i]
		}
		known := t.byKey[key]
		if len(known.targets) == 0 || known.targets[len(known.targets)-1] != target {
			known.targets = append(known.targets, target)
		}
	}
}

// generalize words a finding about one target for any target.
func generalize(f finding.Finding, version string) finding.Finding {
	f.Message = withoutVersion(f.Message, version)
	f.Remediation = withoutVersion(f.Remediation, version)
	f.Actions = slices.Clone(f.Actions)
	for i := range f.Actions {
		f.Actions[i] = f.Actions[i].Mapped(func(word string) string { return withoutVersion(word, version) })
	}
	return f
}

// withoutVersion replaces the version by report.AnyTarget, but not where it is
// part of a longer one.
func withoutVersion(text, version string) string {
	if version == "" || !strings.Contains(text, version) {
		return text
	}
	var general strings.Builder
	done := 0
	for {
		next := strings.Index(text[done:], version)
		if next < 0 {
			return general.String() + text[done:]
		}
		start, end := done+next, done+next+len(version)
		general.WriteString(text[done:start])
		if isPart(text[:start], text[end:]) {
			general.WriteString(version)
		} else {
			general.WriteString(report.AnyTarget)
		}
		done = end
	}
}

// isPart reports whether the text between before and after is part of a longer
// version or name: a dot after it may end a sentence.
func isPart(before, after string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const inside = letters + "+-"
	if before != "" && strings.ContainsRune(inside+".", rune(before[len(before)-1])) {
		return true
	}
	after, dot := strings.CutPrefix(after, ".")
	if dot {
		return after != "" && strings.ContainsRune(letters, rune(after[0]))
	}
	return after != "" && strings.ContainsRune(inside, rune(after[0]))
}

// key is equal for equal findings.
func key(f finding.Finding) [sha256.Size]byte {
	text, err := json.Marshal(f)
	if err != nil {
		text = []byte(f.Name) // strings, numbers and lists of them always encode
	}
	return sha256.Sum256(text)
}

// all are the findings in the order of a report, with the versions of the targets
// that they are about.
func (t *targetFindings) all() []report.TargetFinding {
	all := make([]report.TargetFinding, 0, len(t.byKey))
	for _, shared := range t.byKey {
		slices.Sort(shared.targets)
		about := make([]string, 0, len(shared.targets))
		for _, target := range shared.targets {
			about = append(about, t.candidates[target].Version)
		}
		about = slices.Compact(about)
		f := shared.general
		if len(about) == 1 {
			f = shared.own
		}
		if f.Blocks {
			f.BlockedTargets = about
		}
		all = append(all, report.TargetFinding{Finding: f, Targets: about})
	}
	slices.SortFunc(all, func(a, b report.TargetFinding) int {
		return cmp.Or(finding.Compare(a.Finding, b.Finding), slices.Compare(a.Targets, b.Targets))
	})
	return all
}
