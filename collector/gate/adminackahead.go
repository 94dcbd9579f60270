package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	ReasonNothingAhead finding.Reason = "NothingAhead"
	ReasonAcksAhead    finding.Reason = "AcksAhead"
)

// maxAhead bounds how many gates to come are described.
const maxAhead = 20

// AdminAckAhead foretells which admin acks are asked for after this update, or,
// where it goes more than one minor version, on the way: those of the gates in
// the target's payload, by key. They are not in the way of this update, but are
// tasks for whoever plans the next. What is acknowledged already is left out.
func AdminAckAhead(gates map[string]string) check.Check {
	return check.Check{
		Name: "AdminAckAhead", Kind: finding.SourceGate,
		Reads: adminAckReads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			acked := map[string]string{}
			// Whatever is wrong with the ConfigMap, AdminAck tells of it.
			if acks, err := s.Cluster.ConfigMap(ctx, places()[0].acks, acksName); err == nil {
				acked = acks.Data
			}
			return []finding.Finding{foretell(s.Update, gates, acked)}, nil
		},
	}
}

// foretell words what is to come.
func foretell(u update.Update, gates, acked map[string]string) finding.Finding {
	var texts []string
	url := ""
	for _, key := range slices.Sorted(maps.Keys(gates)) {
		when := asked(u, key)
		if when == "" || acked[key] == "true" {
			continue
		}
		gate := gate{key: key, text: gates[key]}
		texts = append(texts, fmt.Sprintf("%s, %s: %s", when, key, either(gate.description(), "(it does not say what for)")))
		url = either(url, urlIn(gate.text))
	}
	if len(texts) == 0 {
		return finding.Pass(ReasonNothingAhead, "release %s brings no admin gate that would have to be acknowledged later", u.To)
	}
	if more := len(texts) - maxAhead; more > 0 {
		texts = append(texts[:maxAhead], fmt.Sprintf("and %d more", more))
	}
	return finding.Warn(ReasonAcksAhead,
		"release %s brings admin gates; they do not block this update, but later ones:\n%s", u.To, strings.Join(texts, "\n")).
		Remedy("Plan what they ask for. The cluster has a gate once it runs the release; acknowledge it then: oc preflight ack GATE\nPatch updates ask for none.").
		Documented(url)
}

// asked says at which hop a cluster that makes the update meets the gate; empty
// means at none.
func asked(u update.Update, key string) string {
	minor, ok := minorOf(key)
	if !ok {
		return "at every update to another minor version, as its name is invalid"
	}
	at, err := semver.Parse(minor + ".0")
	to := semver.Version{Major: u.To.Major, Minor: u.To.Minor}
	from := semver.Version{Major: u.From.Major, Minor: u.From.Minor}
	switch {
	case err != nil:
		return ""
	case at.EQ(to):
		return "to leave " + minor
	case at.GT(from) && at.LT(to):
		return "on the way, to leave " + minor
	}
	return ""
}
