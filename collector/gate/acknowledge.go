package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Acknowledgement is what the server keeps after Acknowledge.
type Acknowledgement struct {
	// Gate is the key of the gate in admin-gates.
	Gate string
	// Description is what the administrator thereby says was done.
	Description string
	// ConfigMap is the namespace and name of where it is kept.
	ConfigMap string
}

// UnknownGateError names a gate that is not defined.
type UnknownGateError struct {
	Gate string
	// Defined are the gates that are.
	Defined []string
}

// Error implements error.
func (e *UnknownGateError) Error() string {
	if len(e.Defined) == 0 {
		return fmt.Sprintf("there is no gate %q: no admin gates are defined on this cluster", e.Gate)
	}
	return fmt.Sprintf("there is no gate %q; the gates of this cluster are: %s", e.Gate, strings.Join(e.Defined, ", "))
}

// AcknowledgeRequests are what Acknowledge asks of the API server: always, and
// only where the ConfigMap of the acknowledgements is missing, or is where the
// enhancement had it at first.
func AcknowledgeRequests() (always, rarely []authorizationv1.ResourceAttributes) {
	about := func(verb, namespace, name string) authorizationv1.ResourceAttributes {
		return authorizationv1.ResourceAttributes{Verb: verb, Resource: "configmaps", Namespace: namespace, Name: name}
	}
	for i, place := range places() {
		always = append(always, about("get", place.gates, gatesName), about("get", place.acks, acksName))
		rarely = append(rarely, about("create", place.acks, ""))
		if patch := about("patch", place.acks, acksName); i == 0 {
			always = append(always, patch)
		} else {
			rarely = append(rarely, patch)
		}
	}
	return always, rarely
}

// Acknowledge opens one gate: it sets its key in admin-acks to "true", creating
// the ConfigMap where it is missing, and reads back what the server kept. The
// gate may be named by its key or by its risk name, AdminAck-<key>. The error
// for one that is not defined is an *UnknownGateError.
func Acknowledge(ctx context.Context, configMaps corev1client.ConfigMapsGetter, name string) (Acknowledgement, error) {
	pairs, err := readPairs(ctx, func(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
		return configMaps.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return Acknowledgement{}, err
	}
	key := strings.TrimPrefix(name, "AdminAck-")
	var defined []string
	for _, pair := range pairs {
		text, ok := pair.gates.Data[key]
		if ok {
			done := Acknowledgement{
				Gate: key, Description: strings.TrimSpace(text), ConfigMap: pair.place.acks + "/" + acksName,
			}
			return done, pair.acknowledge(ctx, configMaps, key)
		}
		defined = append(defined, slices.Sorted(maps.Keys(pair.gates.Data))...)
	}
	return Acknowledgement{}, &UnknownGateError{Gate: key, Defined: defined}
}

func (p pair) acknowledge(ctx context.Context, configMaps corev1client.ConfigMapsGetter, key string) error {
	kept, err := p.write(ctx, configMaps.ConfigMaps(p.place.acks), key)
	if err != nil {
		return fmt.Errorf("could not acknowledge %q in the ConfigMap %s/%s: %w", key, p.place.acks, acksName, err)
	}
	if kept.Data[key] != "true" {
		return fmt.Errorf("the server did not keep the acknowledgement of %q in the ConfigMap %s/%s: it has %q",
			key, p.place.acks, acksName, kept.Data[key])
	}
	return nil
}

func (p pair) write(ctx context.Context, acks corev1client.ConfigMapInterface, key string) (*corev1.ConfigMap, error) {
	data := map[string]string{key: "true"}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	kept, err := acks.Patch(ctx, acksName, types.MergePatchType, patch, metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		return kept, err
	}
	return acks.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: acksName, Namespace: p.place.acks}, Data: data,
	}, metav1.CreateOptions{})
}
