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

// maxNamed bounds the permissions that a message names for one request.
const maxNamed = 10

// credentials holds the checks.
type credentials struct {
	// directory has the target's CredentialsRequests as files, as `oc adm
	// release extract --credentials-requests` writes them too.
	directory string
}

// permissions fails for each request of the target that wants more than the
// request of the same name in the cluster, which is what the administrator
// granted, unless the administrator says to have seen to it.
func (c credentials) permissions(ctx context.Context, t *preflight.T) error {
	cluster, target, err := c.open(ctx, t)
	if err != nil || len(target) == 0 {
		return err
	}
	acknowledged, err := reaches(cluster.upgradeableTo, t.Update().To)
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
		t.Failf("CredentialsRequest %s of the target asks for what was not granted: %s", wanted.Name, some(missing))
		t.Object(wanted.object())
		remedy()
	}
	return nil
}

func remedyPermissions(t *preflight.T) {
	t.Remedyf("oc adm release extract --from=%s --credentials-requests --included --to=requests", cmp.Or(t.Update().Image, "RELEASE_IMAGE"))
	t.Remedyf("Grant what they ask for: ccoctl aws create-iam-roles --credentials-requests-dir=requests --name=NAME --region=REGION --identity-provider-arn=ARN, or by hand in IAM. Then say so:")
	t.Remedyf("oc annotate cloudcredential.operator.openshift.io/cluster %s=%s --overwrite", upgradeableTo, t.Update().To)
}

// secrets fails for each request of the target that has no Secret with
// credentials for AWS.
func (c credentials) secrets(ctx context.Context, t *preflight.T) error {
	cluster, target, err := c.open(ctx, t)
	if err != nil {
		return err
	}
	for _, wanted := range target {
		ref := wanted.Spec.SecretRef
		fault, err := cluster.secretFault(ctx, ref)
		if err != nil {
			return err
		}
		if fault == "" {
			continue
		}
		t.Reason("SecretMissing")
		t.Failf("Secret %s/%s, which CredentialsRequest %s of the target asks for, %s", ref.Namespace, ref.Name, wanted.Name, fault)
		t.Object(preflight.Object{APIVersion: "v1", Kind: "Secret", Namespace: ref.Namespace, Name: ref.Name})
		t.Remedyf("oc create secret generic %s -n %s --from-file=credentials", ref.Name, ref.Namespace)
	}
	return nil
}

// open finds the cluster and reads the target's requests. There are none where
// the check does not apply.
func (c credentials) open(ctx context.Context, t *preflight.T) (*cluster, []request, error) {
	cluster, err := connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	if cluster.mode != "Manual" {
		t.Skipf("in credentialsMode %q the operator provides the credentials itself", cluster.mode)
		return cluster, nil, nil
	}
	if cluster.platform != "AWS" {
		t.Remedyf("Compare the CredentialsRequests of the two releases by hand.")
		return nil, nil, fmt.Errorf("the platform is %q: only the permissions of AWS are understood here", cluster.platform)
	}
	target, err := readRequests(c.directory)
	return cluster, target, err
}

// reaches reports whether an annotation, such as 4.21 or v4.21.3, covers the
// minor version of target. As with the operator, the patch does not matter
// (cloud-credential-operator pkg/operator/utils), and nonsense covers nothing.
func reaches(annotation, target string) (bool, error) {
	to, err := version.ParseGeneric(target)
	if err != nil {
		return false, fmt.Errorf("the target's version %q: %w", target, err)
	}
	said, err := version.ParseGeneric(annotation)
	if err != nil {
		return false, nil //nolint:nilerr // Nothing was acknowledged.
	}
	return version.MajorMinor(said.Major(), said.Minor()).AtLeast(version.MajorMinor(to.Major(), to.Minor())), nil
}

// some names the first of them, and says how many more there are.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
