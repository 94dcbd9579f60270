package adminack

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/openshift/update-preflight/collector/words"
)

const maxDefined = 20

// Acknowledgement is the result of Acknowledge.
type Acknowledgement struct {
	Gate string
	// Description is the text of the gate: what the administrator acknowledges to have done.
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

// AcknowledgeRequests are the requests of Acknowledge to the API server: those
// that it always makes, and those that it makes only where the ConfigMap of the
// acknowledgements is missing or in its former location.
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

// Acknowledge opens one gate: it sets the gate's key in admin-acks to "true",
// creates the ConfigMap where it is missing, and verifies what the API server
// stored. The gate is named by its key or by its risk name, AdminAck-<key>. A
// gate that is not defined is an *[UnknownGateError]. dryRun is that of the options of the writes.
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
