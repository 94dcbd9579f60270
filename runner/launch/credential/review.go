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

// maxOfOneName bounds the Secrets of one name, in all namespaces, whose content is read.
const maxOfOneName = 20

// Review is what a user may know of a Secret or, for a reference without a namespace, of the Secrets of that
// name in all namespaces. It has nothing of the content.
type Review struct {
	// Credential describes a known credential; empty for none.
	Credential string
	// Type is the error for which not even the type is known, and Content that for which the content is not.
	Type, Content error

	existing map[string]types.UID
}

// Needs are the requests of [Read].
func Needs(secret inventory.Reference) []access.Request {
	return access.Verbs(access.Request{Resource: "secrets", Namespace: secret.Namespace, Name: secret.Name}, "list", "get")
}

// Read reads the type of a Secret and, unless that is a known one, its content. A Secret that does not exist has no
// credential. The error is for an API server that did not respond; a request that it
// forbids is in the Review.
func Read(ctx context.Context, client kubernetes.Interface, objects metadata.Interface, secret inventory.Reference) (Review, error) {
	if len(content.IsPathSegmentName(secret.Name)) > 0 {
		return Review{}, nil // the API server has no object of this name
	}
	r := reader{client: client, objects: objects, secret: secret}
	tokens, err := r.list(ctx, fields.Set{metav1.ObjectNameField: secret.Name, "type": string(corev1.SecretTypeServiceAccountToken)})
	review := Review{existing: map[string]types.UID{}}
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

type reader struct {
	client  kubernetes.Interface
	objects metadata.Interface
	secret  inventory.Reference
}

func (r reader) list(ctx context.Context, selected fields.Set) ([]metav1.PartialObjectMetadata, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
		return r.objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(r.secret.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: selected.String(), Limit: maxOfOneName + 1,
		})
	})
	if err != nil {
		return nil, fmt.Errorf("could not read the type of %s: %w", r.secret, err)
	}
	return found.Items, nil
}

// everywhere reads the Secrets of the name in all namespaces.
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
		review.Content = fmt.Errorf("more than %d namespaces have a Secret of this name", maxOfOneName)
		return review, nil
	}
	for _, one := range named {
		if review, err = r.content(ctx, review, one.Namespace); err != nil || review.Credential != "" {
			return review, err
		}
	}
	return review, nil
}

func (r reader) content(ctx context.Context, review Review, namespace string) (Review, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return r.client.CoreV1().Secrets(namespace).Get(ctx, r.secret.Name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		delete(review.existing, namespace)
		review.Type = nil
		return review, nil
	case apierrors.IsForbidden(err):
		return r.withoutContent(ctx, review, fmt.Errorf("could not read %s: %w", r.secret, err))
	case err != nil:
		return Review{}, fmt.Errorf("could not read %s: %w", r.secret, err)
	}
	review.existing[namespace], review.Type, review.Credential = found.UID, nil, Of(found)
	return review, nil
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
