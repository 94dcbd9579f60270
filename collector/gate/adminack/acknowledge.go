package adminack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/collector/words"
)

const maxDefined = 20

// Acknowledgement is the result of Acknowledge.
type Acknowledgement struct {
	Gate string
	// Description is the text of the gate: the tasks that the administrator acknowledges.
	Description string
	// ConfigMap is the namespace and name of the ConfigMap with the acknowledgement.
	ConfigMap string
}

// UnknownGateError is the error for a gate that is not defined.
type UnknownGateError struct {
	Gate string
	// Defined are the gates of the cluster, sorted.
	Defined []string
}

// CommandExitCode is the exit code for bad input.
func (e *UnknownGateError) CommandExitCode() int { return 2 }

// Error implements error.
func (e *UnknownGateError) Error() string {
	if len(e.Defined) == 0 {
		return fmt.Sprintf("there is no gate %q: no admin gates are defined on this cluster", e.Gate)
	}
	return fmt.Sprintf("there is no gate %q; the gates of this cluster are: %s", e.Gate, words.List(e.Defined, maxDefined))
}

// AcknowledgeRequests returns the requests of Acknowledge to the API server: the ones that it always makes, and
// the ones that it makes only if the ConfigMap of the acknowledgements is missing or in its former location.
func AcknowledgeRequests() (always, rarely []authorizationv1.ResourceAttributes) {
	request := func(verb, namespace, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Resource: "configmaps", Namespace: namespace, Name: name}
	}
	for i, location := range locations() {
		always = append(always, request("get", location.gates, gatesName), request("get", location.acks, acksName))
		rarely = append(rarely, request("create", location.acks, ""))
		if patch := request("patch", location.acks, acksName); i == 0 {
			always = append(always, patch)
		} else {
			rarely = append(rarely, patch)
		}
	}
	return always, rarely
}

// Acknowledge opens one gate: it sets the gate's key in admin-acks to "true", creates the ConfigMap if it is
// missing, and verifies what the API server stored. The gate is named by its key or by its risk name,
// AdminAck-<key>. A gate that is not defined is an *[UnknownGateError]. dryRun is the DryRun option of the writes.
func Acknowledge(ctx context.Context, configMaps corev1client.ConfigMapsGetter, name string, dryRun ...string) (Acknowledgement, error) {
	pairs, err := readPairs(ctx, uncached(configMaps))
	if err != nil {
		return Acknowledgement{}, err
	}
	key := strings.TrimPrefix(name, "AdminAck-")
	var defined []string
	for _, pair := range pairs {
		text, ok := pair.gates.Data[key]
		if ok {
			acknowledged := Acknowledgement{
				Gate: key, Description: strings.TrimSpace(text), ConfigMap: pair.location.acks + "/" + acksName,
			}
			return acknowledged, pair.acknowledge(ctx, configMaps, key, dryRun)
		}
		defined = slices.AppendSeq(defined, maps.Keys(pair.gates.Data))
	}
	slices.Sort(defined)
	return Acknowledgement{}, &UnknownGateError{Gate: key, Defined: defined}
}

// uncached reads ConfigMaps as they are now.
func uncached(configMaps corev1client.ConfigMapsGetter) func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
		return configMaps.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	}
}

// Names are the keys of the admin gates, open or closed, sorted.
func Names(ctx context.Context, configMaps corev1client.ConfigMapsGetter) ([]string, error) {
	pairs, err := readPairs(ctx, uncached(configMaps))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pair := range pairs {
		names = slices.AppendSeq(names, maps.Keys(pair.gates.Data))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Pending reports whether CVO has not evaluated the acknowledgement yet: the condition
// Upgradeable of ClusterVersion, which it updates within minutes, still has the
// description of the gate.
func (a Acknowledgement) Pending(version *configv1.ClusterVersion) bool {
	return a.Description != "" && slices.ContainsFunc(version.Status.Conditions, func(c configv1.ClusterOperatorStatusCondition) bool {
		return c.Type == configv1.OperatorUpgradeable && c.Status == configv1.ConditionFalse && strings.Contains(c.Message, a.Description)
	})
}

func (p pair) acknowledge(ctx context.Context, configMaps corev1client.ConfigMapsGetter, key string, dryRun []string) error {
	stored, err := p.write(ctx, configMaps.ConfigMaps(p.location.acks), key, dryRun)
	if err != nil {
		return fmt.Errorf("could not acknowledge %q in the ConfigMap %s/%s: %w", key, p.location.acks, acksName, err)
	}
	if stored.Data[key] != "true" {
		return fmt.Errorf("the API server did not store the acknowledgement of %q in the ConfigMap %s/%s: the value is %q",
			key, p.location.acks, acksName, stored.Data[key])
	}
	return nil
}

func (p pair) write(ctx context.Context, acks corev1client.ConfigMapInterface, key string, dryRun []string) (*corev1.ConfigMap, error) {
	data := map[string]string{key: "true"}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	stored, err := acks.Patch(ctx, acksName, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
	if !apierrors.IsNotFound(err) {
		return stored, err
	}
	return acks.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: acksName, Namespace: p.location.acks}, Data: data,
	}, metav1.CreateOptions{DryRun: dryRun})
}

var (
	nameAdminAckAhead = finding.NewName("AdminAckAhead",
		"Warns of admin acknowledgements that are required after this update or, if it spans more than one minor version, on the way. "+
			"The check compares the gates in the target's payload, by key, with the ConfigMap admin-acks; acknowledged gates are "+
			"omitted. It concerns every update, and the gates do not block this one.")

	reasonNothingAhead = finding.NewReason("NothingAhead", finding.Explanation{
		Meaning: "The target release adds no gate that an administrator must acknowledge before a later update.",
		Cause:   "The release has no admin gates, or they are acknowledged already.",
	})
	reasonAcksAhead = finding.NewReason("AcksAhead", finding.Explanation{
		Meaning: "The target release adds gates that block later updates until they are acknowledged.",
		Cause:   "A later release removes or changes something, and the cluster must be prepared for it.",
		Remedy: "Plan the tasks in the message. Once the cluster runs the release and they are done, acknowledge each " +
			"gate: `oc preflight ack GATE`.",
	})
	reasonAdminGatesUnread = finding.NewReason("AdminGatesUnread", finding.Explanation{
		Meaning: "A later update of a path has unknown admin gates, because the release before it could not be read.",
		Cause:   "The release could not be verified or read.",
		Remedy:  "Fix the finding about the release, then run the preflight again.",
	})
)

// maxAhead bounds the gates that are described.
const maxAhead = 20

// Ahead is the check AdminAckAhead.
func Ahead(gates map[string]string) check.Check {
	return check.Check{
		Name: nameAdminAckAhead, Kind: finding.SourceGate,
		Reads: reads(),
		Run: func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
			acked := map[string]string{}
			// Check reports a ConfigMap that cannot be read.
			if acks, err := s.Cluster.ConfigMap(ctx, locations()[0].acks, acksName); err == nil {
				acked = acks.Data
			}
			return []finding.Finding{acksAhead(s.Update, gates, acked)}, nil
		},
	}
}

func acksAhead(u update.Update, gates, acked map[string]string) finding.Finding {
	var lines []string
	url := ""
	for _, key := range slices.Sorted(maps.Keys(gates)) {
		hop := hopOf(u, key)
		if hop == "" || acked[key] == "true" {
			continue
		}
		gate := adminGate{key: key, text: gates[key]}
		lines = append(lines, fmt.Sprintf("%s, %s: %s", hop, key, cmp.Or(gate.description(), "(no description)")))
		url = cmp.Or(url, urlIn(gate.text))
	}
	if len(lines) == 0 {
		return finding.Pass(gap.Proven("the manifests of the release"), reasonNothingAhead,
			"release %s adds no admin gate that must be acknowledged later", u.To)
	}
	if more := len(lines) - maxAhead; more > 0 {
		lines = append(lines[:maxAhead], fmt.Sprintf("and %d more", more))
	}
	return finding.Warn(reasonAcksAhead,
		"release %s adds admin gates that do not block this update, but later ones:\n%s", u.To, strings.Join(lines, "\n")).
		Remedy("Plan the tasks. Acknowledge each gate when the cluster runs the release and the task is done. Patch updates require no " +
			"acknowledgement.").
		Documented(url)
}

// hopOf is the hop of a later update at which the gate blocks a cluster that makes this update; empty for none.
func hopOf(u update.Update, key string) string {
	minor, ok := minorOf(key)
	if !ok {
		return "at every update to another minor version, because its name is invalid"
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

// Later is the check with the gates of the payload of the release before the
// update. They can be acknowledged ahead: CVO reads the acknowledgements once it runs that
// release.
func Later(before map[string]string) check.Check {
	later := Check()
	later.Concerns, later.Reads = update.Update.LeavesMinor, reads()
	later.Run = func(ctx context.Context, s check.Subject) ([]finding.Finding, error) {
		if before == nil {
			return []finding.Finding{gatesUnread(s.Update)}, nil
		}
		return laterAcks(ctx, s, before)
	}
	return later
}

func gatesUnread(u update.Update) finding.Finding {
	return finding.Unknown(reasonAdminGatesUnread,
		"the admin acknowledgements required to leave %s are unknown: the release %s could not be read", update.Line(u.From), u.From).
		Remedy("Fix the findings about release %s, then run the preflight again.", u.From)
}

func laterAcks(ctx context.Context, s check.Subject, before map[string]string) ([]finding.Finding, error) {
	location := locations()[0]
	acks, err := read(ctx, s.Cluster.ConfigMap, location.acks, acksName)
	if err != nil {
		return nil, err
	}
	of := adminAck{read: gap.Proven("the manifests of the release").And(gap.ExtentOf(ctx)), minor: update.Line(s.Update.From)}
	judged := of.judgeAll([]pair{{location: location, gates: &corev1.ConfigMap{Data: before}, acks: acks}})
	for i, f := range judged {
		// The command "ack" knows the gates of the present release only.
		judged[i].Actions = slices.DeleteFunc(slices.Clone(f.Actions), func(a finding.Action) bool { return a.Type == finding.ActionAcknowledge })
	}
	return slices.DeleteFunc(judged, func(f finding.Finding) bool { return f.Name == nameUnused }), nil
}
