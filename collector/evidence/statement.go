// Package evidence answers: what did the same update do to clusters like this one?
//
// [Of] makes the [Statement] of one judged update, [Sign] its signed envelope, and [Collect] reads
// the statements of many clusters. [Fold] counts them for a target, and finds what the clusters that
// regressed have in common; [Finding] judges the [Summary], and [GraphData] makes a risk of a
// conditional update of it. All of it is pure: texts, keys and times go in.
//
// Who can forge: a statement counts for the cluster whose key signed it, so a cluster can state
// something wrong about itself, and no other cluster about it. That holds where keys are given:
// without, a statement counts for the cluster that it names.
package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	"github.com/sigstore/sigstore/pkg/signature"

	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/verdict/attestation"
	"github.com/openshift/update-preflight/collector/words"
)

// PredicateType is the type of the predicate that states how an update was.
const PredicateType = "https://preflight.openshift.io/update-judgement/v1alpha1"

// The bounds of one statement.
const (
	// MaxNames is how many names of findings it has.
	MaxNames = 64
	// MaxText bounds its text, signed or not, in bytes.
	MaxText = 64 << 10
	// maxValue bounds a value of the environment, an ID or a version, in bytes, and maxArchitectures their number.
	maxValue, maxArchitectures = 128, 16
	// maxCount bounds a number of objects.
	maxCount = 1 << 30
)

// Statement is what a cluster states about one update that was judged: neither names of objects nor
// messages. Readers ignore fields that they do not know.
type Statement struct {
	// Cluster is spec.clusterID of ClusterVersion.
	Cluster string `json:"cluster"`
	// From and To are versions; Release is the digest of To, such as "sha256:...".
	From    string `json:"from"`
	To      string `json:"to"`
	Release string `json:"release"`
	// Decision is Good, Regressed or RolledBack.
	Decision    afterupdate.Decision    `json:"decision"`
	Environment afterupdate.Environment `json:"environment"`
	Counts      afterupdate.Counts      `json:"counts"`
	// Regressions are the findings that regressed, sorted by name; Unlisted is how many names were left out.
	Regressions []Regressed `json:"regressions"`
	Unlisted    int         `json:"unlisted,omitempty"`
	// StartTime and CompletionTime are those of the update, JudgedTime that of the last sample. RFC 3339 in UTC;
	// StartTime and CompletionTime are empty where unknown.
	StartTime      string `json:"startTime,omitempty"`
	CompletionTime string `json:"completionTime,omitempty"`
	JudgedTime     string `json:"judgedTime"`
	ToolVersion    string `json:"toolVersion,omitempty"`
}

// Regressed is one name of findings that regressed, and the number of objects.
type Regressed struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
}

// Of is the statement of a judged update. A decision that is not final, and a report without cluster, version or
// digest, are errors.
func Of(judged afterupdate.Report, toolVersion string) (Statement, error) {
	made := Statement{
		Cluster: judged.Cluster.ID, From: judged.Update.From, To: judged.Update.To, Release: digestOf(judged.Update.Image),
		Decision: judged.Decision, Environment: judged.Environment, Counts: judged.Counts,
		StartTime: judged.Update.StartTime, CompletionTime: judged.Update.CompletionTime, JudgedTime: judged.Samples.Last,
		ToolVersion: toolVersion,
	}
	made.Regressions, made.Unlisted = regressed(judged.Regressions)
	if text := made.invalid(); text != "" {
		return Statement{}, fmt.Errorf("the update makes no statement: %s", text)
	}
	return made, nil
}

// regressed counts regressions by name, and how many names are left out: those of the fewest objects.
func regressed(regressions []afterupdate.Regression) (listed []Regressed, unlisted int) {
	counts := map[string]int{}
	for _, each := range regressions {
		counts[each.Name]++
	}
	listed = make([]Regressed, 0, len(counts))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		listed = append(listed, Regressed{Name: name, Objects: counts[name]})
	}
	if len(listed) <= MaxNames {
		return listed, 0
	}
	slices.SortStableFunc(listed, func(a, b Regressed) int { return cmp.Compare(b.Objects, a.Objects) })
	unlisted, listed = len(listed)-MaxNames, listed[:MaxNames]
	slices.SortFunc(listed, func(a, b Regressed) int { return strings.Compare(a.Name, b.Name) })
	return listed, unlisted
}

// Encode makes the in-toto statement, in JSON. Its subjects are the release and the cluster, as those of a verdict.
func Encode(stated Statement) ([]byte, error) {
	subjects, err := stated.subjects()
	if err != nil {
		return nil, err
	}
	return attestation.Encode(subjects, PredicateType, stated)
}

// Sign makes the DSSE envelope of a statement, in JSON.
func Sign(stated Statement, key signature.Signer) ([]byte, error) {
	text, err := Encode(stated)
	if err != nil {
		return nil, err
	}
	return attestation.Sign(text, key)
}

// digestOf is the digest of a pull spec, whose host is a name of the user; empty without one.
func digestOf(image string) string {
	_, digest, _ := strings.Cut(image, "@")
	return digest
}

func (s Statement) subjects() ([]attestation.Subject, error) {
	return attestation.Subjects(s.Cluster, "@"+s.Release)
}

// invalid is why a statement does not count, as a clause; empty for one that does.
func (s Statement) invalid() string {
	switch {
	case !s.Decision.Final():
		return fmt.Sprintf("the decision %q is not final", words.External(string(s.Decision)))
	case s.Cluster == "" || len(s.Cluster) > maxValue:
		return "it names no cluster"
	case !isVersion(s.To) || !isVersion(s.From):
		return fmt.Sprintf("%q or %q is no version", words.External(s.From), words.External(s.To))
	case s.judged().IsZero():
		return "it does not state when the update was judged"
	case s.Counts.Regressions < 0 || s.Counts.Regressions > maxCount || s.Unlisted < 0 || s.Unlisted > maxCount:
		return "a number of it is out of range"
	}
	if _, err := s.subjects(); err != nil {
		return err.Error()
	}
	return cmp.Or(s.contradiction(), s.invalidName(), s.invalidEnvironment())
}

// contradiction is which fields contradict each other.
func (s Statement) contradiction() string {
	has := len(s.Regressions) > 0 || s.Counts.Regressions > 0 || s.Unlisted > 0
	switch {
	case s.Decision == afterupdate.Good && has:
		return "the decision is Good, and findings regressed"
	case s.Decision == afterupdate.Regressed && len(s.Regressions) == 0:
		return "the decision is Regressed, and no finding regressed"
	}
	return ""
}

func (s Statement) invalidName() string {
	if len(s.Regressions) > MaxNames {
		return fmt.Sprintf("it has more than %d names of findings", MaxNames)
	}
	seen := map[string]bool{}
	for _, each := range s.Regressions {
		if !finding.ValidName(each.Name) || each.Objects < 1 || each.Objects > maxCount || seen[each.Name] {
			return fmt.Sprintf("%q is no name of a finding, is repeated, or has no objects", words.External(each.Name))
		}
		seen[each.Name] = true
	}
	return ""
}

func (s Statement) invalidEnvironment() string {
	if len(s.Environment.Architectures) > maxArchitectures {
		return fmt.Sprintf("it has more than %d architectures", maxArchitectures)
	}
	for _, field := range Fields() {
		if value := field.Of(s.Environment); value != words.Line(value, maxValue) {
			return fmt.Sprintf("the %s of its environment is too long, or cannot be printed", field.text())
		}
	}
	return ""
}

func (s Statement) judged() time.Time {
	at, err := time.Parse(time.RFC3339, s.JudgedTime)
	if err != nil {
		return time.Time{}
	}
	return at
}

func isVersion(text string) bool {
	_, err := semver.Parse(text)
	return err == nil && len(text) <= maxValue
}
