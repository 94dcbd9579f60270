package launch

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

var reasonRefusedTokenSecret = finding.NewReason("RefusedTokenSecret", finding.Explanation{
	Meaning: "Reported for a check whose containers, or whose account, read a Secret or ConfigMap with a credential of the API server: " +
		"a token of a ServiceAccount, of OAuth or to join a node, a kubeconfig, or a client certificate of a user of " +
		"Kubernetes itself. The read-only guard does not apply to it: it is not the token of the check's pod.",
	Cause: "A volume or an environment variable of the manifest refers to the object, or a role of the check's " +
		"account names it.",
	Remedy: "Report it to the owners of the component. To update without this check, accept the finding.",
})

// maxSecrets bounds the Secrets and ConfigMaps of a run that are read. What others have is unknown.
const maxSecrets = 500

// credentialError means that a check reads a credential that the guard does not recognize.
type credentialError struct {
	secret     inventory.Reference
	credential string
}

func (e *credentialError) Error() string {
	return fmt.Sprintf("%s has %s: a preflight may not have an identity that the read-only guard does not recognize", e.secret, e.credential)
}

func secretsOf(plan jobplan.Plan) []inventory.Reference {
	seen := map[inventory.Reference]bool{}
	for _, check := range plan.Checks {
		for _, secret := range accountcopy.Secrets(plan, check) {
			seen[secret] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), inventory.CompareReferences)
}

// reviewSecrets returns what the user may know of Secrets and ConfigMaps, and the errors of those for which the API server did
// not respond. What is planned is not read.
func (l *Launcher) reviewSecrets(ctx context.Context, secrets []inventory.Reference, planned []payload.Object) (map[inventory.Reference]credential.Review, map[inventory.Reference]error) {
	reviews, errs := make([]credential.Review, len(secrets)), make([]error, len(secrets))
	var requests []func() error
	for i, secret := range secrets {
		if config := configMapOf(planned, secret); config != nil {
			reviews[i].Credential = credential.OfConfigMap(config)
			continue
		}
		if i >= maxSecrets {
			reviews[i].Type = fmt.Errorf("the checks read more than %d Secrets and ConfigMaps", maxSecrets)
			continue
		}
		requests = append(requests, func() error {
			reviews[i], errs[i] = credential.Read(ctx, l.objects.Kubernetes, l.objects.Metadata, secret)
			return nil
		})
	}
	_ = inventory.Concurrently(requests) // the errors are in errs
	reviewed, failed := map[inventory.Reference]credential.Review{}, map[inventory.Reference]error{}
	for i, secret := range secrets {
		reviewed[secret] = reviews[i]
		if errs[i] != nil {
			failed[secret] = errs[i]
		}
	}
	return reviewed, failed
}

// configMapOf is the planned ConfigMap of a reference; nil for none.
func configMapOf(planned []payload.Object, ref inventory.Reference) *corev1.ConfigMap {
	for _, object := range planned {
		if config, ok := object.(*corev1.ConfigMap); ok && inventory.ReferenceTo(object) == ref {
			return config
		}
	}
	return nil
}

// ChangedSecrets reads the Secrets and ConfigMaps of the checks of a plan of [Launcher.Validate] again, and describes in what they
// were other ones than when they were validated, by Secret. It is to be called when the checks have ended. Those of
// checks whose Job was not created do not count. A Secret that cannot be read again is one that changed.
func (l *Launcher) ChangedSecrets(ctx context.Context, plan jobplan.Plan) map[inventory.Reference]string {
	started := plan
	started.Checks = slices.DeleteFunc(slices.Clone(plan.Checks), func(check jobplan.Check) bool { return l.UID(check) == "" })
	reviews, failed := l.reviewSecrets(ctx, secretsOf(started), nil)
	changed := map[inventory.Reference]string{}
	for secret, now := range reviews {
		if text := plan.Secrets[secret].Changed(now); text != "" {
			changed[secret] = text
		}
	}
	for secret, err := range failed {
		changed[secret] = "could not be read again: " + err.Error()
	}
	return changed
}

// rejectCredential returns the error for which a check may not read a Secret or ConfigMap. One of which nothing is known is
// reported by the audit.
func (v *validation) rejectCredential(secret inventory.Reference) error {
	if err := v.secretErrors[secret]; err != nil {
		return err
	}
	if found := v.plan.Secrets[secret].Credential; found != "" {
		return &credentialError{secret: secret, credential: found}
	}
	return nil
}
