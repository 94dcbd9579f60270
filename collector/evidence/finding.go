package evidence

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/words"
)

var (
	name = finding.NewName("Evidence",
		"The check of what other clusters state about the same update, where a source of such statements is given: a "+
			"finding Evidence-<version>, which warns where clusters regressed, and blocks where as many like this one "+
			"regressed by one finding as was chosen. It concerns every update.")

	reasonGoodElsewhere = finding.NewReason("GoodElsewhere", finding.Explanation{
		Meaning: "Reported when the update was good in every cluster like this one that has stated how it was.",
		Cause:   "Each was judged after the update, and nothing that was good before is bad.",
	})
	reasonRegressedElsewhere = finding.NewReason("RegressedElsewhere", finding.Explanation{
		Meaning: "Reported when clusters regressed by the update, or were rolled back, and no threshold is reached.",
		Cause:   "Something that was good before the update was bad after it. The message names the findings, and what these clusters have in common.",
		Remedy: "Read what regressed in a cluster that the message counts (`oc preflight after` there), update a cluster like this one that may fail " +
			"first, or update to another release.",
	})
	reasonThresholdReached = finding.NewReason("RegressionThresholdReached", finding.Explanation{
		Meaning: "Reported when as many clusters like this one regressed by one finding as was chosen to block.",
		Cause:   "Something that was good before the update was bad after it, in these clusters. The message names the findings.",
		Remedy:  "Update to another release, or accept the finding.",
	})
	reasonNoStatements = finding.NewReason("NoStatements", finding.Explanation{
		Meaning: "Reported when no cluster has stated how its update to the target was.",
		Cause:   "No cluster took the target, or none was judged after it. That is neither for nor against the update.",
	})
	reasonNoneAlike = finding.NewReason("NoneAlike", finding.Explanation{
		Meaning: "Reported when the update was good in other clusters, and none of them is like this one.",
		Cause:   "They differ in platform, topology, network type, load balancer or another property that was chosen.",
	})
	reasonStatementRefused = finding.NewReason("StatementRefused", finding.Explanation{
		Meaning: "Reported when nothing is known against the update, and a statement about an update does not count.",
		Cause:   "It is not signed by the key of its cluster, or it cannot be read. The message names where it is.",
		Remedy:  "Correct what the message names, or remove it from the source.",
	})
)

// Set is the evidence for the checks of all targets. Settings.Now is when it was read; a check of a later time has its own.
type Set struct {
	Known    Known
	Settings Settings
}

// Check is the check Evidence.
func Check(set Set) check.Check {
	return check.Check{
		Name: name, Kind: finding.SourceRisk, Reads: ReadsEnvironment(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			topology, err := s.Topology(ctx)
			if err != nil {
				return nil, err
			}
			if topology == snapshot.Kubernetes {
				return []finding.Finding{check.PlainKubernetes("updates by the cluster-version operator")}, nil
			}
			target, settings := s.Update.To.String(), set.Settings
			if s.Now.After(settings.Now) { // an archive is judged as of its own time
				settings.Now = s.Now
			}
			if all := Fold(set.Known, target, nil, settings); all.Alike.All() == 0 {
				return []finding.Finding{Finding(all)}, nil // there is nothing to compare the cluster with
			}
			own, err := EnvironmentOf(ctx, s.Cluster)
			if apierrors.IsNotFound(err) {
				return []finding.Finding{check.APIMissing("Networks", "config.openshift.io")}, nil
			}
			if err != nil {
				return nil, err
			}
			return []finding.Finding{Finding(Fold(set.Known, target, &own, settings))}, nil
		},
	}
}

// maxRefused is how many texts that do not count a message names.
const maxRefused = 3

// Finding judges a summary. What is not known is neither for nor against the update.
func Finding(s Summary) finding.Finding {
	made := s.judged()
	if len(s.Notices) > 0 {
		made = made.Noted("%s", words.Sentence(words.Clauses(s.Notices, maxRefused)))
	}
	if len(s.Refused) > 0 {
		made = made.Noted("%s", refusedText(s.Refused))
	}
	if facts := s.facts(); len(facts) > 0 {
		made = made.Observed(facts)
	}
	return made.Named(Name(s.Target)).From(finding.SourceRisk)
}

// Name is the name of the finding about a target, by which it is accepted.
func Name(target string) string { return finding.NameOf(name, target) }

// Notes are the sentence on all clusters and what else is to be said about it, as clauses of one line each.
func (s Summary) Notes() []string {
	notes := append([]string{s.Sentence()}, s.Notices...)
	if len(s.Refused) > 0 {
		notes = append(notes, strings.TrimSuffix(refusedText(s.Refused), "."))
	}
	return notes
}

func refusedText(refused []string) string {
	return words.Sentence(fmt.Sprintf("%s about updates not counted: %s", words.Count(len(refused), "statement"), words.Clauses(refused, maxRefused)))
}

func (s Summary) judged() finding.Finding {
	read := gap.Proven("the statements of the clusters")
	refuse := []finding.Action{finding.Targets(), finding.Accept(Name(s.Target))}
	against := s.Alike.against()+s.Others.against() > 0
	switch {
	case len(s.Met) > 0:
		return finding.Fail(reasonThresholdReached, "%s%s; %s reaches the threshold %s", s.Sentence(), s.ofAlike(), words.List(s.Met, maxCauses), s.FailAt).Do(refuse...)
	case s.Alike.against() > 0 || against && s.Alike.Good == 0:
		return finding.Warn(reasonRegressedElsewhere, "%s%s", s.Sentence(), s.ofAlike()).Do(finding.Targets())
	case len(s.Refused) > 0:
		return finding.Warn(reasonStatementRefused, "%s%s", s.Sentence(), s.ofAlike())
	case s.Alike.All()+s.Others.All() == 0:
		return finding.Skipped(read, reasonNoStatements, "%s", s.Sentence())
	case s.Alike.All() == 0:
		return finding.Skipped(read, reasonNoneAlike, "%s%s", s.Sentence(), s.ofAlike())
	}
	return finding.Pass(read, reasonGoodElsewhere, "%s%s", s.Sentence(), s.ofAlike())
}

// ofAlike states how the clusters like this one were, after the sentence on all; empty where all are.
func (s Summary) ofAlike() string {
	if s.Others.All() == 0 {
		return ""
	}
	if s.Alike.All() == 0 {
		return fmt.Sprintf("; none of them is like this one (%s)", s.likeText())
	}
	return fmt.Sprintf("; of %d like this one (%s), %d were good", s.Alike.All(), s.likeText(), s.Alike.Good)
}

// likeText lists the properties that are stated.
func (s Summary) likeText() string {
	var texts []string
	for _, each := range s.Like {
		if each.Value == "" {
			each.Value = "not stated"
		}
		texts = append(texts, each.text())
	}
	return strings.Join(texts, ", ")
}

func (s Summary) facts() map[string]string {
	facts := map[string]string{}
	if s.LastTime != "" {
		facts["last judged"] = s.LastTime
	}
	if s.FailAt != "" {
		facts["threshold"] = s.FailAt
	}
	return facts
}
