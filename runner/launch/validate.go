package launch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
	"github.com/openshift/update-preflight/runner/payload"
)

// Validate sends all objects of the plan to the API server as dry runs, so that no Job is started whose objects cannot
// be created. Each check with a rejected object becomes a finding, and is not in the returned plan. When ctx is
// canceled, the remaining checks become Unknown findings.
//
// The returned plan has the temporary copies of CopyAccounts, and its Secrets.
//
// Existing objects of this run are valid if they equal the plan: they will be adopted. A check is rejected if one of
// its objects exists and differs, if admission changes the meaning of one, or if it reads a Secret with a known
// credential; the returned plan contains the reviews of other Secrets.
//
// A dry run does not validate things that depend on objects which do not exist yet: the pods of the Jobs, and the
// permission to bind a role of the plan. The requirements of quotas for the pods are validated, if the user may list
// quotas. A check whose quota is exhausted is valid, because others may free it; it has [Check.Exceeded].
func (l *Launcher) Validate(ctx context.Context, plan jobplan.Plan) ([]finding.Finding, jobplan.Plan) {
	plan = accountcopy.Make(ctx, l.objects.Kubernetes, plan)
	v := validation{launcher: l, plan: plan, objects: map[inventory.Reference]error{}}
	v.run(ctx)
	v.quotas = quotasOf(ctx, l.objects, plan)

	var findings []finding.Finding
	var rejected []string
	for i, check := range plan.Checks {
		if err := v.rejection(i, check); err != nil {
			findings, rejected = append(findings, Explain(check, err)), append(rejected, check.Name)
		}
	}
	valid := v.plan.Without(rejected)
	for i, check := range valid.Checks {
		valid.Checks[i].Exceeded = v.quotas.exceeded(check)
	}
	return findings, valid
}

type validation struct {
	launcher     *Launcher
	plan         jobplan.Plan
	jobs         []error
	objects      map[inventory.Reference]error
	secretErrors map[inventory.Reference]error
	quotas       quotas
}

func (v *validation) run(ctx context.Context) {
	var requests []func() error
	for _, object := range v.plan.Supporting {
		requests = append(requests, func() error { return v.launcher.dryRun(ctx, object) })
	}
	for _, check := range v.plan.Checks {
		requests = append(requests, func() error { return v.launcher.dryRun(ctx, check.Job) })
	}
	errs := inventory.Concurrently(requests)
	for i, object := range v.plan.Supporting {
		v.objects[inventory.ReferenceTo(object)] = errs[i]
	}
	v.jobs = errs[len(v.plan.Supporting):]
	v.plan.Secrets, v.secretErrors = v.launcher.reviewSecrets(ctx, secretsOf(v.plan), v.plan.Supporting)
}

func (v *validation) rejection(i int, check jobplan.Check) error {
	if err := v.jobs[i]; err != nil {
		return err
	}
	if found := credential.OfPod(check.Job.Spec.Template.Spec); found != "" {
		return &credentialError{secret: inventory.ReferenceTo(check.Job), credential: found}
	}
	copied := v.plan.Copies[check.Account()]
	for _, ref := range check.Needs {
		if err := v.objects[ref]; err != nil {
			return notCopied(copied, ref, err)
		}
	}
	for _, secret := range accountcopy.Secrets(v.plan, check) {
		if err := v.rejectCredential(secret); err != nil {
			return err
		}
	}
	if copied.Failed != nil {
		return copied.Failed
	}
	if k, err := inventory.KindOf(check.Job); err == nil && v.launcher.objects.IsPresent(k, check.Job) {
		return nil // its pod may exist
	}
	return v.quotas.unspecified(check)
}

// notCopied returns the error of the API server for an object, as a NotCopiedError if the
// object is one of the copy that the user may not create.
func notCopied(c jobplan.Copy, object inventory.Reference, err error) error {
	ofCopy := slices.ContainsFunc(c.Objects, func(each payload.Object) bool { return inventory.ReferenceTo(each) == object })
	if !ofCopy || !apierrors.IsForbidden(err) {
		return err
	}
	return &accountcopy.Error{Account: c.Original, Err: err}
}

// dryRun returns the error with which the API server rejects the object.
func (l *Launcher) dryRun(ctx context.Context, object payload.Object) error {
	k, err := inventory.KindOf(object)
	if err != nil {
		return err
	}
	if l.objects.IsPresent(k, object) {
		return nil
	}
	err = retry.Do(ctx, func(ctx context.Context) error {
		admitted, err := l.objects.Post(ctx, k, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case err == nil:
			return rejectAltered(object, admitted)
		case roleMissing(object, err):
			return nil
		}
		if _, err = l.orAdopt(ctx, k, object, err); errors.Is(err, errTerminating) {
			return nil // the check may have reported before
		}
		return err
	})
	if err == nil {
		return nil
	}
	if foreign, ok := errors.AsType[*foreignError](err); ok {
		return foreign
	}
	if altered, ok := errors.AsType[*alteredError](err); ok {
		return altered
	}
	return fmt.Errorf("the API server rejects %s: %w", inventory.ReferenceTo(object), err)
}

// roleMissing is true for a binding that is rejected only because its role, which
// the plan creates before, does not exist during a dry run.
func roleMissing(object payload.Object, err error) bool {
	return inventory.IsBinding(inventory.ReferenceTo(object).Kind) && apierrors.IsNotFound(err) && missingKind(err) != "namespaces"
}

var reasonRefusedTokenSecret = finding.NewReason("RefusedTokenSecret", finding.Explanation{
	Meaning: "The containers or the account of the check read a Secret or ConfigMap with an API server credential: a " +
		"token of a ServiceAccount, of OAuth or for joining a node, a kubeconfig, or a client certificate of a " +
		"Kubernetes user. The read-only guard does not cover this credential, because it is not the token of the " +
		"check's pod.",
	Cause:  "A volume or environment variable of the manifest refers to the object, or a role of the check's account names it.",
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

// reviewSecrets returns the reviews of Secrets and ConfigMaps, and the errors where the API server did not respond.
// Planned objects are not read.
func (l *Launcher) reviewSecrets(ctx context.Context, secrets []inventory.Reference,
	planned []payload.Object,
) (map[inventory.Reference]credential.Review, map[inventory.Reference]error) {
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

// ChangedSecrets reads the Secrets and ConfigMaps of the checks of a plan of [Launcher.Validate] again, and describes
// by Secret how they differ from when they were validated. Call it when the checks have finished. Checks whose Job was
// not created do not count. A Secret that cannot be read again counts as changed.
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
