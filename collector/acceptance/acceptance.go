// Package acceptance answers: what did the administrator accept, and does it
// still hold? Acceptances come from ClusterVersion, from the command line and
// from a file that can be kept in git for a fleet; each may be limited to some
// versions, some clusters and some time.
package acceptance

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
)

// maxName is the longest name of a risk that ClusterVersion takes
// (openshift/api config/v1, AcceptRisk).
const maxName = 256

// Acceptance is one risk that somebody accepted, and how far that goes.
type Acceptance struct {
	// Risk is the name of the finding that is accepted.
	Risk string
	// Origin says where it was accepted, e.g. "--accept".
	Origin string
	// Reason and Owner say why and who; only a file has them.
	Reason, Owner string
	// Expires is the date or time as it was written; empty means never.
	Expires string
	// Versions is the range of targets as it was written; empty means all.
	Versions string
	// Clusters are the IDs of the clusters it is for; none means all.
	Clusters []string

	until    time.Time
	versions semver.Range
	// landmarks are versions that tell whether two ranges overlap.
	landmarks []semver.Version
}

// Named are acceptances without limits: only names, from one origin.
func Named(origin string, names ...string) []Acceptance {
	acceptances := make([]Acceptance, 0, len(names))
	for _, name := range names {
		acceptances = append(acceptances, Acceptance{Risk: name, Origin: origin})
	}
	return acceptances
}

// CheckName returns an error that names a risk which could never be accepted.
// The rule is CVO's for the names of risks (cluster-version-operator
// pkg/risk/risk.go), and the length that of ClusterVersion.
func CheckName(risk string) error {
	if !regexp.MustCompile(`^[A-Z][A-Za-z0-9.-]*$`).MatchString(risk) {
		return fmt.Errorf("illegal risk %q: a name begins with a capital letter, and has only letters, digits, dots and dashes", risk)
	}
	if len(risk) > maxName {
		return fmt.Errorf("illegal risk %q: the name has %d characters, and %d are the limit", risk[:40]+"...", len(risk), maxName)
	}
	return nil
}

// String is how reports and errors name the acceptance.
func (a Acceptance) String() string { return a.Risk + " (" + a.Origin + ")" }

// detail is what the report says of who accepted a finding, and why.
func (a Acceptance) detail() string {
	parts := []string{a.Origin}
	if a.Reason != "" {
		parts = append(parts, a.Reason)
	}
	if a.Owner != "" {
		parts = append(parts, "accepted by "+a.Owner)
	}
	if a.Expires != "" {
		parts = append(parts, "until "+a.Expires)
	}
	return strings.Join(parts, "; ")
}

// Question is what acceptances are judged for.
type Question struct {
	// Target is the version that the cluster would be updated to; empty where
	// nobody knows it yet.
	Target string
	// Cluster is spec.clusterID of ClusterVersion.
	Cluster string
	// Now is when the acceptance has to hold.
	Now time.Time
}

// state says whether an acceptance holds.
type state int

const (
	holds state = iota
	// expired ones are for this target and this cluster, but no longer.
	expired
	// elsewhere is for what is about other targets or clusters.
	elsewhere
)

// Account says which of all acceptances hold for one target.
type Account struct {
	all    []Acceptance
	states []state
}

// Judge finds out which acceptances hold. The order of all decides where a risk
// is said to be accepted when it is accepted twice: the first that holds.
func Judge(all []Acceptance, question Question) Account {
	account := Account{all: all, states: make([]state, len(all))}
	for i, acceptance := range all {
		account.states[i] = acceptance.judge(question)
	}
	return account
}

// Until is when the first acceptance of these risks ends to hold; zero when none
// of them ever does.
func (a Account) Until(risks []string) time.Time {
	var first time.Time
	for i, acceptance := range a.all {
		ends := a.states[i] == holds && !acceptance.until.IsZero() && slices.Contains(risks, acceptance.Risk)
		if ends && (first.IsZero() || acceptance.until.Before(first)) {
			first = acceptance.until
		}
	}
	return first
}

func (a Acceptance) judge(question Question) state {
	switch {
	case !a.isFor(question):
		return elsewhere
	case a.Expires != "" && !question.Now.Before(a.until):
		return expired
	}
	return holds
}

// isFor says whether the acceptance is about this target and cluster. What
// nobody can compare it is not for.
func (a Acceptance) isFor(question Question) bool {
	sameCluster := func(id string) bool { return strings.EqualFold(id, question.Cluster) }
	if len(a.Clusters) > 0 && !slices.ContainsFunc(a.Clusters, sameCluster) {
		return false
	}
	if a.versions == nil {
		return true
	}
	target, err := semver.Parse(question.Target)
	return err == nil && a.versions(target)
}

// Accepted maps the names of what is accepted to where and why.
func (a Account) Accepted() map[string]string {
	accepted := map[string]string{}
	for i, acceptance := range a.all {
		if _, known := accepted[acceptance.Risk]; !known && a.states[i] == holds {
			accepted[acceptance.Risk] = acceptance.detail()
		}
	}
	return accepted
}
