package launch

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

var reasonRefusedTokenSecret = finding.NewReason("RefusedTokenSecret", finding.Explanation{
	Meaning: "Reported for a check whose containers, or whose account, read a Secret of type " +
		"kubernetes.io/service-account-token. The read-only guard does not apply to its token, which is not that " +
		"of the check's pod.",
	Cause: "A volume or an environment variable of the manifest refers to the Secret, or a role of the check's " +
		"account names it.",
	Remedy: "Report it to the owners of the component. To update without this check, accept the finding.",
})

// tokenSecretError means that the containers of a check read a token that the guard
// does not recognize.
type tokenSecretError struct {
	secret inventory.Reference
}

func (e *tokenSecretError) Error() string {
	return fmt.Sprintf("%s has a token of a ServiceAccount: a preflight may not have an identity that the read-only guard does not recognize", e.secret)
}

// rejectToken returns a tokenSecretError for a Secret of that type. It reads no
// content of the Secret. No error is returned for a Secret that does not exist yet, or
// that the user may not list.
func rejectToken(ctx context.Context, client metadata.Interface, secret inventory.Reference) error {
	var found *metav1.PartialObjectMetadataList
	err := retry.Do(ctx, func(ctx context.Context) (err error) {
		found, err = client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(secret.Namespace).List(ctx, metav1.ListOptions{
			FieldSelector: fields.Set{
				metav1.ObjectNameField: secret.Name,
				"type":                 string(corev1.SecretTypeServiceAccountToken),
			}.String(),
			Limit: 1,
		})
		return err
	})
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("could not read the type of %s: %w", secret, err)
	case len(found.Items) > 0:
		return &tokenSecretError{secret: secret}
	}
	return nil
}
