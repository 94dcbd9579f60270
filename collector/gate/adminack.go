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

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/update"
)

const (
	ReasonAdminGatesMissing  finding.Reason = "AdminGatesMissing"
	ReasonAdminAcksMissing   finding.Reason = "AdminAcksMissing"
	ReasonInvalidGateName    finding.Reason = "InvalidGateName"
	ReasonEmptyGate          finding.Reason = "EmptyGate"
	ReasonAcknowledged       finding.Reason = "Acknowledged"
	ReasonAdminAckWrongValue finding.Reason = "AdminAckWrongValue"
	ReasonAdminAckRequired   finding.Reason = "AdminAckRequired"
)

const (
	ReasonNothingToAcknowledge finding.Reason = "NothingToAcknowledge"
	ReasonUnknownAck           finding.Reason = "UnknownAck"
)

const (
	gatesName = "admin-gates"
	acksName  = "admin-acks"
	// nameUnknown names the finding where the gates cannot be evaluated.
	nameUnknown = "AdminAckUnknown"
	reportGate  = "Report the gate as a defect of the installed release, which defines it."
	// maxDescription bounds what is quoted of a gate's description, in bytes.
	maxDescription = 4096
)

// AdminAck is the gate that an administrator opens by acknowledging that the
// tasks described in the admin-gates ConfigMap are done: one finding for each
// gate that applies, or one that says that there is none. It concerns updates
// that leave the current minor version. The rules are those of CVO
// (pkg/risk/adminack); like it, the gate fails closed when either ConfigMap is
// missing.
func AdminAck() check.Check {
	return check.Check{
		Name: "AdminAck", Kind: finding.SourceGate, Concerns: update.Update.LeavesMinor,
		Reads: adminAckReads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			pairs, err := readPairs(ctx, s.Cluster.ConfigMap)
			if err != nil {
				return nil, err
			}
			return adminAck{minor: minorVersion(s.Update.From)}.judgeAll(pairs), nil
		},
	}
}

// adminAckReads are both ConfigMaps, in every place.
func adminAckReads() []access.Request {
	var reads []access.Request
	for _, place := range places() {
		reads = append(reads, check.Get("", "configmaps", place.gates, gatesName), check.Get("", "configmaps", place.acks, acksName))
	}
	return reads
}

// adminAck judges the gates of one minor version: the one that they have to
// name to apply.
type adminAck struct{ minor string }

func (a adminAck) judgeAll(pairs []pair) []finding.Finding {
	if len(pairs) == 0 {
		return []finding.Finding{gatesMissing()}
	}
	var findings []finding.Finding
	for _, pair := range pairs {
		findings = append(findings, a.judge(pair)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []finding.Finding{finding.Pass(ReasonNothingToAcknowledge, "no admin ack is asked for to leave %s", a.minor)}
}

func (a adminAck) judge(pair pair) []finding.Finding {
	if pair.acks == nil {
		return []finding.Finding{acksMissing(pair.place)}
	}
	var findings []finding.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.gates.Data)) {
		gate := gate{key: key, text: pair.gates.Data[key], place: pair.place}
		gate.ack, gate.answered = pair.acks.Data[key]
		if f, concerned := gate.judge(a.minor); concerned {
			findings = append(findings, f)
		}
	}
	return append(findings, a.unusedAcks(pair)...)
}

func gatesMissing() finding.Finding {
	place := places()[0]
	return finding.Fail(ReasonAdminGatesMissing,
		"the ConfigMap %s/%s does not exist, so unknown what has to be acknowledged; CVO blocks the update", place.gates, gatesName).
		Named(nameUnknown).
		Remedy("CVO creates it. Check that CVO is running, then run the preflight again.").
		Do(finding.Run("oc -n openshift-cluster-version get pods"), finding.Run("oc -n %s get configmap %s", place.gates, gatesName)).
		About(place.objects()...)
}

func acksMissing(place place) finding.Finding {
	return finding.Fail(ReasonAdminAcksMissing, "the ConfigMap %s/%s does not exist; CVO blocks the update", place.acks, acksName).
		Named(nameUnknown).
		Remedy("Create the ConfigMap.").
		Do(finding.Run("oc -n %s create configmap %s", place.acks, acksName)).
		About(place.objects()...)
}

// unusedAcks warns of acknowledgements for this version that no gate asks for:
// most likely a slip of the pen. Those of other versions are history.
func (a adminAck) unusedAcks(pair pair) []finding.Finding {
	var findings []finding.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.acks.Data)) {
		_, asked := pair.gates.Data[key]
		if minor, ok := minorOf(key); asked || (ok && minor != a.minor) {
			continue
		}
		findings = append(findings, finding.Warn(ReasonUnknownAck,
			"the ConfigMap %s/%s acknowledges %q, but no gate has that name", pair.place.acks, acksName, key).
			Named("AdminAckUnused").
			Remedy("Compare it with the names of the gates: oc -n %s get configmap %s -o yaml", pair.place.gates, gatesName).
			About(finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: pair.place.acks, Name: acksName}))
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

// judge returns the finding of a gate; false when it does not concern a cluster
// at the minor version given. An acknowledged gate is a bypassed failure.
func (g gate) judge(current string) (finding.Finding, bool) {
	minor, ok := minorOf(g.key)
	if ok && minor != current {
		return finding.Finding{}, false
	}
	return g.finding(ok).
		Named("AdminAck-" + strings.ReplaceAll(g.key, "_", "-")).
		About(g.place.objects()...).
		Documented(urlIn(g.text)), true
}

func (g gate) finding(validName bool) finding.Finding {
	switch {
	case !validName:
		return finding.Fail(ReasonInvalidGateName,
			"the gate %q in ConfigMap %s/%s has an invalid name: it must match %s", g.key, g.place.gates, gatesName, gateKey).
			Remedy(reportGate)
	case g.text == "":
		return finding.Fail(ReasonEmptyGate,
			"the gate %q in ConfigMap %s/%s has no description; CVO does not accept an acknowledgement for it", g.key, g.place.gates, gatesName).
			Remedy(reportGate)
	case g.ack == "true":
		return finding.Fail(ReasonAcknowledged, "%s", g.description()).
			Bypassed(finding.Bypass{By: finding.ByAdminAck, Detail: g.place.acks + "/" + acksName})
	case g.answered:
		return g.asksFor(finding.Fail(ReasonAdminAckWrongValue,
			"the acknowledgement of %q has the value %q, and only \"true\" counts: %s", g.key, g.ack, g.description()))
	}
	return g.asksFor(finding.Fail(ReasonAdminAckRequired, "%s", g.description()))
}

func (g gate) description() string {
	text := strings.TrimSpace(g.text)
	if len(text) > maxDescription {
		return strings.ToValidUTF8(text[:maxDescription], "") + " [...]"
	}
	return text
}

// asksFor adds the remedy of a gate that is not acknowledged.
func (g gate) asksFor(f finding.Finding) finding.Finding {
	return f.Remedy("Do what the message asks for, then acknowledge the gate.").
		Do(finding.Acknowledge(g.key), finding.Run("oc -n %s patch configmap %s --type merge --patch '{\"data\":{%q:\"true\"}}'", g.place.acks, acksName, g.key))
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

// objects are both ConfigMaps.
func (p place) objects() []finding.Object {
	return []finding.Object{
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.gates, Name: gatesName},
		{APIVersion: "v1", Kind: "ConfigMap", Namespace: p.acks, Name: acksName},
	}
}

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
