package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/version"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// maxNamed is the maximum number of permissions in a message for one request.
const maxNamed = 10

// credentials has the checks as methods.
type credentials struct {
	// directory contains the target's CredentialsRequests as files, in the form of
	// `oc adm release extract --credentials-requests`.
	directory string
}

// permissions fails for each request of the target that requires more permissions than
// the request of the same name in the cluster, for which the administrator granted
// them. It passes if the administrator acknowledged the target.
func (c credentials) permissions(ctx context.Context, t *preflight.T) error {
	cluster, target, err := c.open(ctx, t)
	if err != nil || len(target) == 0 {
		return err
	}
	acknowledged, err := covers(cluster.upgradeableTo, t.Update().To)
	if err != nil {
		return err
	}
	if acknowledged {
		t.Evidence(upgradeableTo, cluster.upgradeableTo)
		return nil
	}

	remedy := sync.OnceFunc(func() { remedyPermissions(t) })
	for _, wanted := range target {
		granted, err := cluster.granted(ctx, wanted)
		if err != nil {
			return err
		}
		missing := wanted.beyond(granted)
		if len(missing) == 0 {
			continue
		}
		t.Reason("PermissionsMissing")
		t.Failf("CredentialsRequest %s of the target requires permissions that are not granted: %s", wanted.Name, some(missing))
		t.Object(wanted.object())
		remedy()
	}
	return nil
}

func remedyPermissions(t *preflight.T) {
	t.Remedyf("Read the requests of the target, grant the permissions with ccoctl or in IAM, then acknowledge the update.")
	t.Commandf("oc adm release extract --from=%s --credentials-requests --included --to=requests", cmp.Or(t.Update().Image, "RELEASE_IMAGE"))
	t.Commandf("ccoctl aws create-iam-roles --credentials-requests-dir=requests --name=NAME --region=REGION --identity-provider-arn=ARN")
	t.Commandf("oc annotate cloudcredential.operator.openshift.io/cluster %s=%s --overwrite", upgradeableTo, t.Update().To)
}

// secrets fails for each request of the target whose Secret is missing or has no
// credentials for AWS.
func (c credentials) secrets(ctx context.Context, t *preflight.T) error {
	cluster, target, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	for _, wanted := range target {
		ref := wanted.Spec.SecretRef
		violation, err := cluster.secretViolation(ctx, ref)
		if err != nil {
			return err
		}
		if violation == "" {
			continue
		}
		t.Reason("SecretMissing")
		t.Failf("Secret %s/%s, which CredentialsRequest %s of the target requires, %s", ref.Namespace, ref.Name, wanted.Name, violation)
		t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: ref.Namespace, Name: ref.Name})
		t.Remedyf("Create the Secret with the credentials of the cloud.")
		t.Commandf("oc create secret generic %s -n %s --from-file=credentials", ref.Name, ref.Namespace)
	}
	return nil
}

// open connects to the cluster and reads the target's requests. They are empty if the
// check does not apply.
func (c credentials) open(ctx context.Context, t *preflight.T) (*cluster, []request, error) {
	cluster, err := connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if cluster.mode != "Manual" {
		t.Skipf("in credentialsMode %q the operator creates the credentials", cluster.mode)
		return cluster, nil, nil
	}
	if cluster.platform != "AWS" {
		t.Remedyf("Compare the CredentialsRequests of both releases manually.")
		return nil, nil, fmt.Errorf("platform %q: only the permissions of AWS are supported", cluster.platform)
	}
	target, err := readRequests(c.directory)
	return cluster, target, err
}

// covers reports whether an annotation, such as 4.21 or v4.21.3, covers the minor
// version of target. As in the operator, the patch version is ignored
// (cloud-credential-operator pkg/operator/utils), and an invalid version covers nothing.
func covers(annotation, target string) (bool, error) {
	to, err := version.ParseGeneric(target)
	if err != nil {
		return false, fmt.Errorf("target version %q: %w", target, err)
	}
	acknowledged, err := version.ParseGeneric(annotation)
	if err != nil {
		return false, nil //nolint:nilerr // An invalid annotation acknowledges nothing.
	}
	return version.MajorMinor(acknowledged.Major(), acknowledged.Minor()).AtLeast(version.MajorMinor(to.Major(), to.Minor())), nil
}

// some returns the first names and the number of the others.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
