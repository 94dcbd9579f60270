// Package adminack answers: which tasks must an administrator acknowledge before an update?
//
// [Check] is the gate of the current release, [Later] the gate of a later update of a path, and [Ahead] lists what
// the target will require. [Acknowledge] opens one gate.
package adminack

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
	"github.com/openshift/update-preflight/collector/cvo"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/gate/measure"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

// The names of the findings about admin gates, and their reasons.
var (
	Name = finding.NewName("AdminAck",
		"Blocks updates to another minor or major version until an administrator acknowledges that the tasks in the ConfigMap "+
			"admin-gates are done. Each gate of the current minor version has a finding AdminAck-<gate>. While an update is in "+
			"progress, that is the minor version of the last completed release up to 4.22, and of the release in progress since. The "+
			"rules are CVO's (pkg/risk/adminack), which has admin gates since 4.8.14 and 4.9. Like CVO, the check blocks the update "+
			"when the ConfigMap admin-gates or admin-acks is missing.")

	nameUnknown = finding.NewName("AdminAckUnknown", "Admin gates that cannot be evaluated.")

	nameUnused = finding.NewName("AdminAckUnused", "An acknowledgement without a gate.")

	reasonNothingToAcknowledge = finding.NewReason("NothingToAcknowledge", finding.Explanation{
		Meaning: "No gate requires an acknowledgement before the cluster leaves its minor version.",
		Cause:   "The ConfigMap admin-gates has no gate for the minor version, or the installed release predates admin gates.",
	})
	reasonAdminAckRequired = finding.NewReason("AdminAckRequired", finding.Explanation{
		Meaning: "An admin gate is not acknowledged. CVO blocks updates to another minor version.",
		Cause: "The installed release requires an administrator to acknowledge that the tasks in the message are done, such as moving " +
			"clients to another API.",
		Remedy: "Do what the message requires, then acknowledge the gate: `oc preflight ack GATE`.",
	})
	reasonAdminAckWrongValue = finding.NewReason("AdminAckWrongValue", finding.Explanation{
		Meaning: "The acknowledgement of a gate has a value other than \"true\", so CVO ignores it.",
		Cause:   "The value in the ConfigMap admin-acks was set by hand, for example to \"True\".",
		Remedy:  "Do what the message requires, then acknowledge the gate: `oc preflight ack GATE`.",
	})
	reasonAcknowledged = finding.NewReason("Acknowledged", finding.Explanation{
		Meaning: "An admin gate is acknowledged, so the finding is bypassed.",
		Cause:   "An administrator acknowledged that the tasks in the message are done.",
	})
	reasonInvalidGateName = finding.NewReason("InvalidGateName", finding.Explanation{
		Meaning: "CVO cannot determine to which minor version a gate applies. It then blocks every update to another minor version.",
		Cause:   "The name of the gate does not match ^ack-([4-5][.][0-9]{1,})-[^-].",
		Remedy:  "Report a bug in the installed release, which defines the gate.",
	})
	reasonEmptyGate = finding.NewReason("EmptyGate", finding.Explanation{
		Meaning: "A gate has no description. CVO does not accept an acknowledgement of such a gate.",
		Cause:   "The installed release has a bug.",
		Remedy:  "Report a bug in the installed release, which defines the gate.",
	})
	reasonUnknownAck = finding.NewReason("UnknownAck", finding.Explanation{
		Meaning: "The ConfigMap admin-acks contains an acknowledgement for this minor version that matches no gate.",
		Cause:   "Most likely a misspelled name.",
		Remedy:  "Compare the acknowledgement with the names of the gates.",
		Command: "oc -n openshift-config-managed get configmap admin-gates -o yaml",
	})
	reasonAdminGatesMissing = finding.NewReason("AdminGatesMissing", finding.Explanation{
		Meaning: "The ConfigMap with the admin gates does not exist. CVO then blocks every update to another minor version.",
		Cause:   "The ConfigMap was deleted, and CVO, which creates it, is not running.",
		Remedy:  "Check that CVO is running: `oc -n openshift-cluster-version get pods`.",
	})
	reasonAdminAcksMissing = finding.NewReason("AdminAcksMissing", finding.Explanation{
		Meaning: "The ConfigMap with the acknowledgements does not exist. CVO then blocks every update to another minor version.",
		Cause:   "The ConfigMap was deleted.",
		Remedy:  "Create the ConfigMap.",
		Command: "oc -n openshift-config create configmap admin-acks",
	})
)

const (
	gatesName  = "admin-gates"
	acksName   = "admin-acks"
	reportGate = "Report a bug in the installed release, which defines the gate."
	// maxDescription bounds a gate's description in a message, in bytes.
	maxDescription = 4096
)

// Check is the check AdminAck.
func Check() check.Check {
	return check.Check{
		Name: Name, Kind: finding.SourceGate,
		Reads: append(check.ReadsClusterVersion(), reads()...),
		Run: measure.Run(measure.ByUpgradeable, func(ctx context.Context, s check.Subject, m measure.Measure) ([]finding.Finding, error) {
			if !cvo.HasAdminGates(m.Desired) {
				return []finding.Finding{finding.Pass(gap.Proven("the version of CVO"), reasonNothingToAcknowledge,
					"the CVO of %s has no admin gates; 4.8.14 added them", m.Desired)}, nil
			}
			pairs, err := readPairs(ctx, s.Cluster.ConfigMap)
			if err != nil {
				return nil, err
			}
			return adminAck{read: gap.ExtentOf(ctx), minor: update.Line(cvo.AcksOf(m.Completed, m.Desired))}.judgeAll(pairs), nil
		}),
	}
}

func reads() []access.Request {
	var reads []access.Request
	for _, location := range locations() {
		reads = append(reads, check.Get("", "configmaps", location.gates, gatesName), check.Get("", "configmaps", location.acks, acksName))
	}
	return reads
}

type adminAck struct {
	read  gap.Extent
	minor string
}

func (a adminAck) judgeAll(pairs []pair) []finding.Finding {
	if len(pairs) == 0 {
		return []finding.Finding{gatesMissing()}
	}
	var findings []finding.Finding
	for _, pair := range pairs {
		findings = append(findings, a.evaluate(pair)...)
	}
	if len(findings) > 0 {
		return findings
	}
	return []finding.Finding{finding.Pass(a.read, reasonNothingToAcknowledge, "no admin acknowledgement is required to leave %s", a.minor)}
}

func (a adminAck) evaluate(pair pair) []finding.Finding {
	if pair.acks == nil {
		return []finding.Finding{acksMissing(pair.location)}
	}
	var findings []finding.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.gates.Data)) {
		gate := adminGate{key: key, text: pair.gates.Data[key], location: pair.location}
		gate.ack, gate.acked = pair.acks.Data[key]
		if f, applies := gate.evaluate(a.minor); applies {
			findings = append(findings, f)
		}
	}
	return append(findings, a.unusedAcks(pair)...)
}

func gatesMissing() finding.Finding {
	location := locations()[0]
	return finding.Fail(reasonAdminGatesMissing,
		"the ConfigMap %s/%s does not exist, so the gates that must be acknowledged are unknown; CVO blocks the update",
		location.gates, gatesName).
		Named(nameUnknown).
		Remedy("CVO creates the ConfigMap. Check that CVO is running, then run the preflight again.").
		Do(check.CVOPods(), finding.Read("oc -n %s get configmap %s", location.gates, gatesName)).
		About(location.objects()...)
}

func acksMissing(location location) finding.Finding {
	return finding.Fail(reasonAdminAcksMissing, "the ConfigMap %s/%s does not exist; CVO blocks the update", location.acks, acksName).
		Named(nameUnknown).
		Do(finding.Change("oc -n %s create configmap %s", location.acks, acksName)).
		About(location.objects()...)
}

// unusedAcks warns of acknowledgements for this version that no gate requires, most likely because of a misspelled
// name. Acknowledgements for other versions are ignored.
func (a adminAck) unusedAcks(pair pair) []finding.Finding {
	var findings []finding.Finding
	for _, key := range slices.Sorted(maps.Keys(pair.acks.Data)) {
		_, required := pair.gates.Data[key]
		if minor, ok := minorOf(key); required || (ok && minor != a.minor) {
			continue
		}
		findings = append(findings, finding.Warn(reasonUnknownAck,
			"the ConfigMap %s/%s acknowledges %q, but no gate has that name", pair.location.acks, acksName, key).
			Named(nameUnused).
			Do(finding.Read("oc -n %s get configmap %s -o yaml", pair.location.gates, gatesName)).
			About(configMap(pair.location.acks, acksName)))
	}
	return findings
}

type adminGate struct {
	key, text string
	location  location
	ack       string
	acked     bool
}

// gateKey is the form of a gate's name in CVO (pkg/risk/adminack/adminack.go),
// where it is not anchored at the end either.
var gateKey = regexp.MustCompile(`^ack-([4-5][.][0-9]{1,})-[^-]`)

// evaluate returns the finding of a gate; false when the gate does not apply to a
// cluster at this minor version. An acknowledged gate is a bypassed failure.
func (g adminGate) evaluate(current string) (finding.Finding, bool) {
	minor, ok := minorOf(g.key)
	if ok && minor != current {
		return finding.Finding{}, false
	}
	return g.finding(ok).
		Named(Name + "-" + strings.ReplaceAll(g.key, "_", "-")).
		About(g.location.objects()...).
		Documented(urlIn(g.text)), true
}

func (g adminGate) finding(validName bool) finding.Finding {
	switch {
	case !validName:
		return finding.Fail(reasonInvalidGateName,
			"the gate %q in ConfigMap %s/%s has an invalid name: it must match %s", g.key, g.location.gates, gatesName, gateKey).
			Remedy(reportGate)
	case g.text == "":
		return finding.Fail(reasonEmptyGate,
			"the gate %q in ConfigMap %s/%s has no description; CVO does not accept an acknowledgement for it", g.key, g.location.gates, gatesName).
			Remedy(reportGate)
	case g.ack == "true":
		return finding.Fail(reasonAcknowledged, "%s", g.description()).
			Bypassed(finding.Bypass{By: finding.ByAdminAck, Detail: g.location.acks + "/" + acksName})
	case g.acked:
		return g.required(finding.Fail(reasonAdminAckWrongValue,
			"the acknowledgement of %q has the value %q, but only \"true\" counts: %s", g.key, words.Cut(g.ack, maxDescription), g.description()))
	}
	return g.required(finding.Fail(reasonAdminAckRequired, "%s", g.description()))
}

func (g adminGate) description() string { return words.Lines(g.text, maxDescription) }

// required adds the remedy of a gate that is not acknowledged.
func (g adminGate) required(f finding.Finding) finding.Finding {
	return f.Remedy("Do what the message requires, then acknowledge the gate.").
		Do(finding.Acknowledge(g.key),
			finding.Change("oc -n %s patch configmap %s --type merge --patch %s", g.location.acks, acksName,
				finding.JSON(map[string]any{"data": map[string]string{g.key: "true"}})))
}

var httpsURL = regexp.MustCompile(`https://[^[:space:]]+`)

func urlIn(text string) string { return httpsURL.FindString(text) }

// minorOf returns the minor version that a gate applies to, if its name is valid.
func minorOf(key string) (string, bool) {
	match := gateKey.FindStringSubmatch(key)
	if match == nil {
		return "", false
	}
	major, minor, _ := strings.Cut(match[1], ".")
	if len(minor) > 1 && minor[0] == '0' {
		return "", false // 4.08 is not a version
	}
	return major + "." + minor, true
}

// location is the namespaces of a pair of ConfigMaps.
type location struct{ gates, acks string }

func (l location) objects() []finding.Object {
	return []finding.Object{configMap(l.gates, gatesName), configMap(l.acks, acksName)}
}

func configMap(namespace, name string) finding.Object {
	return finding.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: name}
}

// locations are where CVO has its ConfigMaps, then where the first version of the
// enhancement upgrades-blocking-on-ack had them.
func locations() []location {
	return []location{
		{gates: "openshift-config-managed", acks: "openshift-config"},
		{gates: "openshift-cluster-version", acks: "openshift-cluster-version"},
	}
}

// pair is the ConfigMaps of one location. acks is nil when that ConfigMap is missing.
type pair struct {
	location    location
	gates, acks *corev1.ConfigMap
}

type getter func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)

// readPairs returns a pair for every location in which gates are defined.
func readPairs(ctx context.Context, get getter) ([]pair, error) {
	var pairs []pair
	for _, location := range locations() {
		gates, err := read(ctx, get, location.gates, gatesName)
		if err != nil {
			return nil, err
		}
		if gates == nil {
			continue
		}
		acks, err := read(ctx, get, location.acks, acksName)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{location: location, gates: gates, acks: acks})
	}
	return pairs, nil
}

// read returns nil for a ConfigMap that does not exist.
func read(ctx context.Context, get getter, namespace, name string) (*corev1.ConfigMap, error) {
	configMap, err := get(ctx, namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing ConfigMap is a valid result, which the callers evaluate
	}
	if err != nil {
		return nil, fmt.Errorf("could not read the ConfigMap %s/%s: %w", namespace, name, err)
	}
	return configMap, nil
}
