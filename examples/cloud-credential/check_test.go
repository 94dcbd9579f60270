package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/examples/internal/checktest"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/test/cluster"
)

var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// mode returns the configuration of a cluster: its credentialsMode, its platform and the
// annotation upgradeable-to.
func mode(credentialsMode, platform, upgradeableTo string) string {
	return fmt.Sprintf(`---
apiVersion: operator.openshift.io/v1
kind: CloudCredential
metadata:
  name: cluster
  annotations: {cloudcredential.openshift.io/upgradeable-to: %q}
spec: {credentialsMode: %q}
---
apiVersion: config.openshift.io/v1
kind: Infrastructure
metadata: {name: cluster}
spec: {}
status: {platformStatus: {type: %s}}
`, upgradeableTo, credentialsMode, platform)
}

// request returns a CredentialsRequest for the image registry.
func request(statements ...string) string {
	return fmt.Sprintf(`---
apiVersion: cloudcredential.openshift.io/v1
kind: CredentialsRequest
metadata: {name: openshift-image-registry, namespace: openshift-cloud-credential-operator}
spec:
  secretRef: {name: installer-cloud-credentials, namespace: openshift-image-registry}
  providerSpec:
    apiVersion: cloudcredential.openshift.io/v1
    kind: AWSProviderSpec
    statementEntries: [%s]
`, strings.Join(statements, ", "))
}

func allow(resource string, actions ...string) string {
	return fmt.Sprintf(`{effect: Allow, action: ["%s"], resource: %q}`, strings.Join(actions, `", "`), resource)
}

// secret returns the Secret of the image registry with the given keys.
func secret(keys ...string) string {
	var data []string
	for _, key := range keys {
		data = append(data, key+": c2VjcmV0LXZhbHVl")
	}
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: installer-cloud-credentials, namespace: "+
		"openshift-image-registry}, data: {%s}}\n",
		strings.Join(data, ", "))
}

// directory returns a directory with the target's requests as files.
func directory(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, content := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.yaml", i)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newEnvironment(t *testing.T) *checktest.Environment {
	t.Helper()
	return checktest.New(t, local, "openshift-cloud-credential-operator", "cloud-credential-preflight",
		"testdata/credentialsrequests.crd.yaml")
}

func TestCloudPermissions(t *testing.T) {
	env := newEnvironment(t)
	manual := mode("Manual", "AWS", "")
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	missing := func(message string) checktest.Want {
		return checktest.Want{
			Outcome: preflight.Fail, Reason: "PermissionsMissing", Objects: []string{"openshift-image-registry"},
			Messages: []string{"CredentialsRequest openshift-image-registry of the target requires permissions that are not granted: " + message},
		}
	}
	unknown := func(messages ...string) checktest.Want {
		return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Messages: messages}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		target string
		run    func(*testing.T, ...string) checktest.Report
		want   checktest.Want
	}{
		"Same": {
			reason: "the target requires no more permissions than the current release",
			state:  manual + request(allow("*", "s3:GetObject", "s3:PutObject")),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"NewAction": {
			reason: "the case of the enhancement: the target requires more permissions than granted",
			state:  manual + request(allow("*", "s3:GetObject")),
			target: request(allow("*", "s3:PutBucketPolicy", "s3:GetObject", "s3:CreateBucket")),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "PermissionsMissing", Objects: []string{"openshift-image-registry"},
				Messages: []string{"not granted: s3:CreateBucket on *, s3:PutBucketPolicy on *"},
				Remedies: []string{
					"oc adm release extract --from=quay.io/openshift-release-dev/ocp-release@sha256:",
					"oc annotate cloudcredential.operator.openshift.io/cluster cloudcredential.openshift.io/upgradeable-to=4.21.3 --overwrite",
				},
			},
		},
		"NewRequest": {
			reason: "all permissions of a new request are new",
			state:  manual,
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"OtherResource": {
			reason: "a permission applies to its resource only",
			state:  manual + request(allow("arn:aws:s3:::a-*", "s3:GetObject")),
			target: request(allow("arn:aws:s3:::a-1", "s3:GetObject"), allow("arn:aws:s3:::b-1", "s3:GetObject")),
			want:   missing("s3:GetObject on arn:aws:s3:::b-1"),
		},
		"Wildcard": {
			reason: "a wildcard grants what it matches, case-insensitively, and no more",
			state:  manual + request(allow("*", "s3:Get*", "ec2:Describe?olumes")),
			target: request(allow("*", "S3:getobject", "s3:GetBucket*", "ec2:DescribeVolumes", "ec2:Describe*")),
			want:   missing("ec2:Describe* on *"),
		},
		"Dots": {
			reason: "metacharacters of regular expressions have no meaning in IAM",
			state:  manual + request(allow("arn:aws:s3:::a.b", "s3:GetObject")),
			target: request(allow("arn:aws:s3:::a-b", "s3:GetObject")),
			want:   missing("s3:GetObject on arn:aws:s3:::a-b"),
		},
		"Condition": {
			reason: "a permission with a condition does not grant one without",
			state: manual + request(
				`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			target: request(allow("*", "kms:Encrypt")),
			want:   missing("kms:Encrypt on *"),
		},
		"SameCondition": {
			reason: "a permission with a condition grants one with the same condition",
			state: manual + request(
				`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			target: request(
				`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			want: pass,
		},
		"Acknowledged": {
			reason: "the administrator acknowledged the minor version",
			state:  mode("Manual", "AWS", "4.21.0"),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"AcknowledgedWithV": {
			reason: "a v prefix is ignored, as in the operator",
			state:  mode("Manual", "AWS", "v4.22"),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"AcknowledgedBefore": {
			reason: "an acknowledgement of an earlier minor version does not count",
			state:  mode("Manual", "AWS", "4.20"),
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"AcknowledgedInvalid": {
			reason: "an acknowledgement that is not a version does not count",
			state:  mode("Manual", "AWS", "yes"),
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"Mint": {
			reason: "an operator that creates the credentials extends the permissions itself",
			state:  mode("Mint", "AWS", ""),
			target: request(allow("*", "s3:GetObject")),
			want:   checktest.Want{Outcome: preflight.Skipped, Reason: "NotApplicable", Messages: []string{`in credentialsMode "Mint"`}},
		},
		"OtherPlatform": {
			reason: "permissions of other clouds are not supported, so the check is inconclusive",
			state:  mode("Manual", "Azure", ""),
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`platform "Azure"`),
		},
		"Deny": {
			reason: "with an unsupported statement of the target the check is inconclusive",
			state:  manual + request(allow("*", "*")),
			target: request(`{effect: Deny, action: ["s3:*"], resource: "*"}`),
			want:   unknown(`has a statement with effect "Deny"`),
		},
		"DenyInCluster": {
			reason: "with an unsupported statement in the cluster the check is inconclusive",
			state:  manual + request(allow("*", "*"), `{effect: Deny, action: ["s3:*"], resource: "*"}`),
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`has a statement with effect "Deny"`),
		},
		"OtherCloudsRequest": {
			reason: "requests for other clouds are ignored; without any request the check is inconclusive",
			state:  manual,
			target: strings.ReplaceAll(request(), "AWSProviderSpec", "GCPProviderSpec"),
			want:   unknown("no CredentialsRequest for AWS"),
		},
		"OtherKind": {
			reason: "with an object of another kind the check is inconclusive",
			state:  manual,
			target: strings.ReplaceAll(request(), "kind: CredentialsRequest", "kind: Other"),
			want:   unknown(`kind "Other": want CredentialsRequest`),
		},
		"NoYAML": {
			reason: "with a file that is not YAML the check is inconclusive",
			state:  manual,
			target: "a: [",
			want:   unknown(`cannot read the CredentialsRequest in "0.yaml"`),
		},
		"NoConfiguration": {
			reason: "without the configuration of the operator the check is inconclusive",
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`cloudcredentials.operator.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			state:  manual,
			target: request(allow("*", "s3:GetObject")),
			run:    env.RunUnprivileged,
			want:   unknown(`cloudcredentials.operator.openshift.io "cluster" is forbidden`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, tc.state+secret("credentials"))
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			run(t, "CREDENTIALS_REQUESTS="+directory(t, tc.target)).Expect(t, tc.reason, "CloudPermissions", tc.want)
		})
	}

	t.Run("Output", func(t *testing.T) {
		env.Apply(t, manual+request(allow("*", "s3:GetObject"))+secret("credentials"))
		env.ExpectOutput(t, "CREDENTIALS_REQUESTS="+directory(t, request(allow("*", "s3:PutBucketPolicy", "s3:GetObject", "s3:CreateBucket"))))
	})
}

// The manifest of the Job sets the directory.
func TestCloudPermissionsWithoutDirectory(t *testing.T) {
	env := newEnvironment(t)
	env.Apply(t, mode("Manual", "AWS", ""))
	env.Run(t).Expect(t, "without the requests of the target the check is inconclusive", "CloudPermissions", checktest.Want{
		Outcome: preflight.Unknown, Reason: "CheckError", Messages: []string{"CREDENTIALS_REQUESTS"},
	})
}

// TestShippedRequests tests that the manifests are consistent: the check may read the
// Secrets of the requests that the release ships.
func TestShippedRequests(t *testing.T) {
	env := newEnvironment(t)
	content, err := os.ReadFile("manifests/0000_50_cloud-credential-operator_10_preflight-requests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var shipped corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &shipped); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range shipped.Data {
		files = append(files, file)
		env.Apply(t, file)
	}
	env.Apply(t, mode("Manual", "AWS", ""))
	report := env.Run(t, "CREDENTIALS_REQUESTS="+directory(t, files...))
	report.Expect(t, "a cluster with the shipped requests grants their permissions", "CloudPermissions", checktest.Want{
		Outcome: preflight.Pass, Reason: "Passed",
	})
	f := report.Findings["CloudSecrets"]
	if f.Outcome != preflight.Fail || len(f.Objects) != len(files) {
		t.Errorf("without Secrets: got %s with %d objects, want Fail with %d: %s", f.Outcome, len(f.Objects), len(files), f.Message)
	}
}

func TestManifests(t *testing.T) {
	env := newEnvironment(t)
	env.ExpectJob(t)
	env.ExpectRoles(t)
}

func TestCloudSecrets(t *testing.T) {
	env := newEnvironment(t)
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	missing := func(message string) checktest.Want {
		return checktest.Want{
			Outcome: preflight.Fail, Reason: "SecretMissing", Objects: []string{"installer-cloud-credentials"},
			Messages: []string{"Secret openshift-image-registry/installer-cloud-credentials, which CredentialsRequest " +
				"openshift-image-registry of the target requires, " + message},
			Remedies: []string{"oc create secret generic installer-cloud-credentials -n openshift-image-registry"},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		run    func(*testing.T, ...string) checktest.Report
		want   checktest.Want
	}{
		"Config": {
			reason: "ccoctl creates a config file, e.g. for STS",
			state:  secret("credentials"),
			want:   pass,
		},
		"AccessKey": {
			reason: "an administrator may provide an access key",
			state:  secret("aws_access_key_id", "aws_secret_access_key"),
			want:   pass,
		},
		"Missing": {
			reason: "without its Secret a component of the target would not become available",
			want:   missing("does not exist"),
		},
		"Empty": {
			reason: "a Secret without credentials is not sufficient",
			state:  secret("region"),
			want:   missing("has neither credentials nor"),
		},
		"IncompleteKey": {
			reason: "an incomplete access key is not sufficient",
			state:  secret("aws_access_key_id"),
			want:   missing("has neither credentials nor"),
		},
		"Forbidden": {
			reason: "without permission the check is inconclusive, and the message names the missing permission",
			run:    env.RunUnprivileged,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Messages: []string{`cloudcredentials.operator.openshift.io "cluster" is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			env.Apply(t, mode("Manual", "AWS", "4.21")+tc.state)
			run := env.Run
			if tc.run != nil {
				run = tc.run
			}
			report := run(t, "CREDENTIALS_REQUESTS="+directory(t, request(allow("*", "s3:GetObject"))))
			report.Expect(t, tc.reason, "CloudSecrets", tc.want)
			if strings.Contains(report.Output, "secret-value") {
				t.Errorf("%s: the output must not contain the credentials:\n%s", tc.reason, report.Output)
			}
		})
	}
}
