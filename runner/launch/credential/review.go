package credential

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// maxOfOneName bounds the Secrets or ConfigMaps of one name, in all namespaces, whose content is read.
const maxOfOneName = 20

// Resource is the resource of a kind that may hold credentials; empty for another kind.
func Resource(kind string) string {
	return map[string]string{inventory.SecretKind: "secrets", inventory.ConfigMapKind: "configmaps"}[kind]
}

// Holds is true for a reference to an object that may hold a credential: a Secret, and a ConfigMap but for those with the
// certificates of authorities that Kubernetes and OpenShift write into each namespace, and write again when they are changed.
func Holds(object inventory.Reference) bool {
	published := object.Kind == inventory.ConfigMapKind && slices.Contains([]string{"kube-root-ca.crt", "openshift-service-ca.crt"}, object.Name)
	return Resource(object.Kind) != "" && object.Name != "" && !published
}

// Review is what a user may know of a Secret or ConfigMap or, for a reference without a namespace, of those of that
// name in all namespaces. It has nothing of the content.
type Review struct {
	// Credential describes a known credential; empty for none.
	Credential string
	// Type is the error for which not even the type is known, and Content that for which the content is not. A ConfigMap has
	// no type: nothing is known of one of unknown content.
	Type, Content error

	existing map[string]types.UID
}

// Needs are the requests of [Read].
func Needs(secret inventory.Reference) []access.Request {
	return access.Verbs(access.Request{Resource: Resource(secret.Kind), Namespace: secret.Namespace, Name: secret.Name}, "list", "get")
}

// Read reads the type of a Secret and, unless that is a known one, its content, or that of a ConfigMap. What does not exist
// has no credential. The error is for an API server that did not respond; a request that it
// forbids is in the Review.
func Read(ctx context.Context, client kubernetes.Interface, objects metadata.Interface, secret inventory.Reference) (Review, error) {
	if len(content.IsPathSegmentName(secret.Name)) > 0 {
		return Review{}, nil // the API server has no object of this name
	}
	r := reader{client: client, objects: objects, secret: secret}
	review := Review{existing: map[string]types.UID{}}
	if secret.Kind == inventory.ConfigMapKind {
		return r.ofConfigMap(ctx, review)
	}
	tokens, err := r.list(ctx, fields.Set{metav1.ObjectNameField: secret.Name, "type": string(corev1.SecretTypeServiceAccountToken)})
	switch {
	case apierrors.IsForbidden(err):
		review.Type = err
	case err != nil:
		return Review{}, err
	case len(tokens) > 0:
		review.note(tokens)
		review.Credential = ofAccount
		return review, nil
	}
	if secret.Namespace != "" {
		return r.content(ctx, review, secret.Namespace)
	}
	return r.everywhere(ctx, review)
}

// ofConfigMap reviews a ConfigMap, or those of the name in all namespaces. One that is created later has what its content
// then shows.
func (r reader) ofConfigMap(ctx context.Context, review Review) (Review, error) {
	read := r.everywhere
	if r.secret.Namespace != "" {
		read = func(ctx context.Context, review Review) (Review, error) {
			return r.content(ctx, review, r.secret.Namespace)
		}
	}
	review, err := read(ctx, review)
	if apierrors.IsForbidden(err) {
		return Review{Type: err, Content: err}, nil
	}
	review.existing = nil
	return review, err
}

type reader struct {
	client  kubernetes.Interface
	objects metadata.Interface
	secret  inventory.Reference
}

func (r reader) list(ctx context.Context, selected fields.Set) ([]metav1.PartialObjectMetadata, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
		return r.objects.Resource(corev1.SchemeGroupVersion.WithResource(Resource(r.secret.Kind))).Namespace(r.secret.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: selected.String(), Limit: maxOfOneName + 1,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("could not read the type of %s: %w", r.secret, err)
	}
	return found.Items, nil
}

// everywhere reads the objects of the name in all namespaces.
func (r reader) everywhere(ctx context.Context, review Review) (Review, error) {
	if review.Type != nil {
		review.Content = review.Type
		return review, nil //nolint:nilerr // the error is in the review
	}
	named, err := r.list(ctx, fields.Set{metav1.ObjectNameField: r.secret.Name})
	if err != nil {
		return Review{}, err
	}
	review.note(named)
	if len(named) > maxOfOneName {
		review.Content = fmt.Errorf("more than %d namespaces have a %s of this name", maxOfOneName, r.secret.Kind)
		return review, nil
	}
	for _, one := range named {
		if review, err = r.content(ctx, review, one.Namespace); err != nil || review.Credential != "" || review.Type != nil {
			return review, err
		}
	}
	return review, nil
}

func (r reader) content(ctx context.Context, review Review, namespace string) (Review, error) {
	uid, found, err := r.get(ctx, namespace)
	switch {
	case apierrors.IsNotFound(err):
		delete(review.existing, namespace)
		review.Type = nil
		return review, nil
	case apierrors.IsForbidden(err) && r.secret.Kind == inventory.ConfigMapKind:
		review.Type, review.Content = err, err
		return review, nil
	case apierrors.IsForbidden(err):
		return r.withoutContent(ctx, review, fmt.Errorf("could not read %s: %w", r.secret, err))
	case err != nil:
		return Review{}, fmt.Errorf("could not read %s: %w", r.secret, err)
	}
	review.existing[namespace], review.Type, review.Credential = uid, nil, found
	return review, nil
}

// get reads the object, and returns its UID and a description of its first known credential.
func (r reader) get(ctx context.Context, namespace string) (types.UID, string, error) {
	if r.secret.Kind == inventory.ConfigMapKind {
		config, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
			return r.client.CoreV1().ConfigMaps(namespace).Get(ctx, r.secret.Name, metav1.GetOptions{})
		})
		if err != nil {
			return "", "", err
		}
		return config.UID, OfConfigMap(config), nil
	}
	secret, err := retry.Get(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return r.client.CoreV1().Secrets(namespace).Get(ctx, r.secret.Name, metav1.GetOptions{})
	})
	if err != nil {
		return "", "", err
	}
	return secret.UID, Of(secret), nil
}

// withoutContent notes whether the Secret exists, where the user may list it.
func (r reader) withoutContent(ctx context.Context, review Review, cause error) (Review, error) {
	review.Content = cause
	if review.Type != nil {
		return review, nil //nolint:nilerr // the error is in the review
	}
	named, err := r.list(ctx, fields.Set{metav1.ObjectNameField: r.secret.Name})
	if err != nil {
		return Review{}, err
	}
	review.note(named)
	return review, nil
}

func (r *Review) note(secrets []metav1.PartialObjectMetadata) {
	for _, secret := range secrets {
		r.existing[secret.Namespace] = secret.UID
	}
}

// Changed describes in what a Secret was another one when the checks had ended than before they started: it has a
// known credential now, it was created, or it cannot be read any more. It is empty for a Secret that was deleted, and
// for one that was updated and has no known credential.
func (r Review) Changed(now Review) string {
	var created []string
	for _, namespace := range slices.Sorted(maps.Keys(now.existing)) {
		if now.existing[namespace] != r.existing[namespace] {
			created = append(created, namespace)
		}
	}
	switch {
	case now.Credential != "" && r.Credential == "":
		return "has " + now.Credential + " now"
	case now.Type != nil && r.Type == nil:
		return "could be read before, and not any more: " + now.Type.Error()
	case now.Content != nil && r.Content == nil:
		return "could be read before, and not any more: " + now.Content.Error()
	case len(created) > 0 && r.Type == nil:
		return "was created meanwhile in namespace " + strings.Join(created, ", ")
	}
	return ""
}
