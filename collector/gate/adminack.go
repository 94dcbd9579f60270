package gate

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	gatesName = "admin-gates"
	acksName  = "admin-acks"
	// maxDescription bounds what is quoted of a gate's description, in bytes.
	maxDescription = 4096
)

// AdminAck is the gate that an administrator opens by acknowledging that the
// tasks described in the admin-gates ConfigMap are done: one finding for each
// gate that applies, or one that says that there is none. It concerns updates
// that leave the current minor version. The rules are those of CVO
// (pkg/risk/adminack); like it, the gate fails closed when either ConfigMap is
// missing.
func AdminAck(cluster *snapshot.Cluster, u update.Update) check.Check {
	gate := adminAck{minor: fmt.Sprintf("%d.%d", u.From.Major, u.From.Minor)}
	return check.Check{
		Title: "AdminAck", Kind: preflight.SourceGate, Update: u, Concerns: update.Update.LeavesMinor,
		Look: func(ctx context.Context) ([]preflight.Finding, error) {
			pairs, err := readPairs(ctx, cluster.ConfigMap)
			if err != nil {
				return nil, err
			}
			return gate.judgeAll(pairs), nil
		},
	}
}

// adminAck judges the gates of one minor version: the one that they have to
// name to apply.
type adminAck struct{ minor string }

func (a adminAck) judgeAll(pairs []pair) []preflight.Finding {
	if len(pairs) == 0 {
		return []preflight.Finding{gatesMissing()}
	}
	var findings []preflight.Finding
	for _, pair := range pairs {
		findings = append(findings, a.judge(pair)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []preflight.Finding{{
		Outcome: preflight.Pass, Reason: "NothingToAcknowledge",
		Message: fmt.Sprintf("no admin ack is asked for to leave %s", a.minor),
	}}
}

func (a adminAck) judge(pair pair) []preflight.Finding {
	if pair.acks == nil {
		return []preflight.Finding{acksMissing(pair.place)}
	}
	var findings []preflight.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.gates.Data)) {
		gate := gate{key: key, text: pair.gates.Data[key], place: pair.place}
		gate.ack, gate.answered = pair.acks.Data[key]
		if finding, concerned := gate.judge(a.minor); concerned {
			findings = append(findings, closed(finding, pair.place))
		}
	}
	return append(findings, a.unusedAcks(pair)...)
}

// closed completes a finding with what every closed admin gate shares.
func closed(finding preflight.Finding, place place) preflight.Finding {
	finding.Outcome = preflight.Fail
	finding.Objects = []preflight.Object{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: place.gates, Name: gatesName},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: place.acks, Name: acksName},
	}
	return finding
}

func gatesMissing() preflight.Finding {
	place := places()[0]
	return closed(preflight.Finding{
		Name: "AdminAckUnknown", Reason: "AdminGatesMissing",
		Message: fmt.Sprintf("the ConfigMap %s/%s does not exist, so nobody can tell what has to be acknowledged; CVO blocks the update",
			place.gates, gatesName),
		Remediation: fmt.Sprintf("CVO brings it back by itself; see whether it is running: oc -n openshift-cluster-version get pods; then: oc -n %s get configmap %s",
			place.gates, gatesName),
	}, place)
}

func acksMissing(place place) preflight.Finding {
	return closed(preflight.Finding{
		Name: "AdminAckUnknown", Reason: "AdminAcksMissing",
		Message:     fmt.Sprintf("the ConfigMap %s/%s does not exist; CVO blocks the update", place.acks, acksName),
		Remediation: fmt.Sprintf("Create it: oc -n %s create configmap %s", place.acks, acksName),
	}, place)
}

// unusedAcks warns of acknowledgements for this version that no gate asks for:
// most likely a slip of the pen. Those of other versions are history.
func (a adminAck) unusedAcks(pair pair) []preflight.Finding {
	var findings []preflight.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.acks.Data)) {
		_, asked := pair.gates.Data[key]
		if minor, ok := minorOf(key); asked || (ok && minor != a.minor) {
			continue
		}
		findings = append(findings, preflight.Finding{
			Name: "AdminAckUnused", Outcome: preflight.Warn, Reason: "UnknownAck",
			Message:     fmt.Sprintf("the ConfigMap %s/%s acknowledges %q, but no gate has that name", pair.place.acks, acksName, key),
			Remediation: "Compare it with the names of the gates: oc -n " + pair.place.gates + " get configmap " + gatesName + " -o yaml",
			Objects:     []preflight.Object{{APIVersion: "v1", Kind: "ConfigMap", Namespace: pair.place.acks, Name: acksName}},
		})
	}
	return findings
}

// gate is one entry of admin-gates with its acknowledgement.
type gate struct {
	key, text string
	place     place
	ack       string
	answered  bool
}

// gateKey is the form of a gate's name in CVO (pkg/risk/adminack/adminack.go).
// Like there it is not anchored at the end.
const gateKey = `^ack-([4-5][.][0-9]{1,})-[^-]`

// judge says what is wrong with a gate, and whether it concerns a cluster at
// the minor version given. The outcome is filled in by the caller, but for an
// acknowledged gate, which is marked as bypassed.
func (g gate) judge(current string) (preflight.Finding, bool) {
	finding := preflight.Finding{Name: "AdminAck-" + strings.ReplaceAll(g.key, "_", "-")}
	minor, ok := minorOf(g.key)
	switch {
	case !ok:
		finding.Reason = "InvalidGateName"
		finding.Message = fmt.Sprintf("the gate %q in ConfigMap %s/%s has an invalid name: it must match %s", g.key, g.place.gates, gatesName, gateKey)
		finding.Remediation = "Report it: the release that is installed brought this gate."
	case minor != current:
		return preflight.Finding{}, false
	case g.text == "":
		finding.Reason = "EmptyGate"
		finding.Message = fmt.Sprintf("the gate %q in ConfigMap %s/%s does not say what to acknowledge; CVO does not take an acknowledgement for it",
			g.key, g.place.gates, gatesName)
		finding.Remediation = "Report it: the release that is installed brought this gate."
	case g.ack == "true":
		finding.Reason = "Acknowledged"
		finding.Message = g.description()
		finding.Bypass = &preflight.Bypass{By: "AdminAck", Detail: g.place.acks + "/" + acksName}
	case g.answered:
		finding.Reason = "AdminAckWrongValue"
		finding.Message = fmt.Sprintf("the acknowledgement of %q has the value %q, and only \"true\" counts: %s", g.key, g.ack, g.description())
		finding.Remediation = g.remedy()
	default:
		finding.Reason = "AdminAckRequired"
		finding.Message = g.description()
		finding.Remediation = g.remedy()
	}
	finding.URL = urlIn(g.text)
	return finding, true
}

func (g gate) description() string {
	text := strings.TrimSpace(g.text)
	if len(text) > maxDescription {
		return strings.ToValidUTF8(text[:maxDescription], "") + " [...]"
	}
	return text
}

func (g gate) remedy() string {
	return fmt.Sprintf("Do what the message asks for, then acknowledge it:\noc preflight ack %s\n"+
		"which is the same as: oc -n %s patch configmap %s --type merge --patch '{\"data\":{%q:\"true\"}}'",
		g.key, g.place.acks, acksName, g.key)
}

func urlIn(text string) string {
	return regexp.MustCompile(`https://[^[:space:]]+`).FindString(text)
}

// minorOf returns the minor version that a gate applies to, if its name is valid.
func minorOf(key string) (string, bool) {
	match := regexp.MustCompile(gateKey).FindStringSubmatch(key)
	if match == nil {
		return "", false
	}
	major, minor, _ := strings.Cut(match[1], ".")
	if len(minor) > 1 && minor[0] == '0' {
		return "", false // 4.08 is not a version
	}
	return major + "." + minor, true
}

// place is where a pair of ConfigMaps is found: the namespaces of both.
type place struct{ gates, acks string }

// places are where CVO has its ConfigMaps, then where the enhancement
// upgrades-blocking-on-ack had them at first.
func places() []place {
	return []place{
		{gates: "openshift-config-managed", acks: "openshift-config"},
		{gates: "openshift-cluster-version", acks: "openshift-cluster-version"},
	}
}

// pair is what was found in a place. acks is nil when that ConfigMap is
// missing.
type pair struct {
	place       place
	gates, acks *corev1.ConfigMap
}

// getter reads one ConfigMap.
type getter func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// readPairs returns a pair for every place where gates are defined.
func readPairs(ctx context.Context, get getter) ([]pair, error) {
	var pairs []pair
	for _, place := range places() {
		gates, err := read(ctx, get, place.gates, gatesName)
		if err != nil {
			return nil, err
		}
		if gates == nil {
			continue
		}
		acks, err := read(ctx, get, place.acks, acksName)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{place: place, gates: gates, acks: acks})
	}
	return pairs, nil
}

// read returns nil where the ConfigMap does not exist.
func read(ctx context.Context, get getter, namespace, name string) (*corev1.ConfigMap, error) {
	configMap, err := get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // missing is an answer here, and the callers judge it
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the ConfigMap %s/%s: %w", namespace, name, err)
	}
	return configMap, nil
}
