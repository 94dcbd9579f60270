// Package acceptance answers: which risks did the administrator accept, and do the
// acceptances still hold?
//
// Acceptances are in ClusterVersion, in the request, and in a file that can be kept
// in git for a fleet. Each may be limited to versions, to clusters and in time.
package acceptance

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// maxQuoted bounds a text of the user in an error, in bytes.
const maxQuoted = 64

// Acceptance is one accepted risk, with its limits.
type Acceptance struct {
	// Risk is the name of the finding that is accepted.
	Risk string
	// Origin is where it was accepted, e.g. "spec.desiredUpdate.acceptRisks".
	Origin string
	// Reason is why the risk is acceptable, Owner who accepted it; only a file has them.
	Reason, Owner string
	// Expires is the date or time as in the file; empty means never.
	Expires string
	// Versions is the range of targets as in the file; empty means all.
	Versions string
	// Clusters are the IDs of the clusters it is for; none means all.
	Clusters []string
	// Names and Labels select clusters of a fleet; none means all.
	Names  []string
	Labels map[string]string

	until     time.Time
	versions  semver.Range
	landmarks []semver.Version
}

// Named are acceptances without limits, from one origin.
func Named(origin string, names ...string) []Acceptance {
	acceptances := make([]Acceptance, 0, len(names))
	for _, name := range names {
		acceptances = append(acceptances, Acceptance{Risk: name, Origin: origin})
	}
	return acceptances
}

// CheckName returns an error for a name by which no finding can be accepted.
func CheckName(risk string) error {
	switch {
	case finding.ValidName(risk):
		return nil
	case len(risk) > finding.MaxName:
		return fmt.Errorf("illegal risk %q: the name has %d characters, and %d are the limit", words.Cut(risk, maxQuoted), len(risk), finding.MaxName)
	}
	return fmt.Errorf("illegal risk %q: a name begins with a capital letter, and has only letters, digits, dots and dashes", words.Cut(risk, finding.MaxName))
}

// String is the acceptance in reports and errors.
func (a Acceptance) String() string { return a.Risk + " (" + a.Origin + ")" }

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

// Scope is the update, the cluster and the time for which acceptances are judged.
type Scope struct {
	// Target is the version of the target; empty when unknown.
	Target string
	// Cluster is spec.clusterID of ClusterVersion.
	Cluster string
	// Now is the time at which the acceptance has to hold.
	Now time.Time
}

type state int

const (
	holds state = iota
	// expired acceptances are for this target and this cluster, and have expired.
	expired
	// outOfScope acceptances are for other targets or clusters.
	outOfScope
)

// Account is which of all acceptances hold for one target.
type Account struct {
	all    []Acceptance
	states []state
}

// Judge determines which acceptances hold. Of several acceptances of one risk, the first that holds is its origin.
func Judge(all []Acceptance, scope Scope) Account {
	account := Account{all: all, states: make([]state, len(all))}
	for i, acceptance := range all {
		account.states[i] = acceptance.judge(scope)
	}
	return account
}

// Until is the time at which the first acceptance of these risks expires; zero when none expires.
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

func (a Acceptance) judge(scope Scope) state {
	switch {
	case !a.isFor(scope):
		return outOfScope
	case a.Expires != "" && !scope.Now.Before(a.until):
		return expired
	}
	return holds
}

// isFor reports whether the acceptance is for this target and cluster. A target that
// cannot be compared is not in a range.
func (a Acceptance) isFor(scope Scope) bool {
	sameCluster := func(id string) bool { return strings.EqualFold(id, scope.Cluster) }
	if len(a.Clusters) > 0 && !slices.ContainsFunc(a.Clusters, sameCluster) {
		return false
	}
	if a.versions == nil {
		return true
	}
	target, err := semver.Parse(scope.Target)
	return err == nil && a.versions(target)
}

// Accepted maps the names of the accepted risks to the details of their bypass.
func (a Account) Accepted() map[string]string {
	accepted := map[string]string{}
	for i, acceptance := range a.all {
		if _, known := accepted[acceptance.Risk]; !known && a.states[i] == holds {
			accepted[acceptance.Risk] = acceptance.detail()
		}
	}
	return accepted
}
