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

// mode is the configuration of a cluster on a platform in a credentialsMode,
// with the annotation upgradeable-to.
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

// request is a CredentialsRequest for the image registry.
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

// secret is that of the image registry with the given keys.
func secret(keys ...string) string {
	var data []string
	for _, key := range keys {
		data = append(data, key+": c2VjcmV0LXZhbHVl")
	}
	return fmt.Sprintf("---\n{apiVersion: v1, kind: Secret, metadata: {name: installer-cloud-credentials, namespace: openshift-image-registry}, data: {%s}}\n",
		strings.Join(data, ", "))
}

// directory holds the target's requests as files.
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

func newStage(t *testing.T) *checktest.Stage {
	t.Helper()
	return checktest.New(t, local, "openshift-cloud-credential-operator", "cloud-credential-preflight",
		"testdata/credentialsrequests.crd.yaml")
}

func TestCloudPermissions(t *testing.T) {
	stage := newStage(t)
	manual := mode("Manual", "AWS", "")
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	missing := func(says string) checktest.Want {
		return checktest.Want{
			Outcome: preflight.Fail, Reason: "PermissionsMissing", Objects: []string{"openshift-image-registry"},
			Says: []string{"CredentialsRequest openshift-image-registry of the target asks for what was not granted: " + says},
		}
	}
	unknown := func(says ...string) checktest.Want {
		return checktest.Want{Outcome: preflight.Unknown, Reason: "CheckError", Says: says}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		target string
		ask    func(*testing.T, ...string) checktest.Answer
		want   checktest.Want
	}{
		"Same": {
			reason: "the target wants no more than the cluster's release, which works",
			state:  manual + request(allow("*", "s3:GetObject", "s3:PutObject")),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"NewAction": {
			reason: "the story of the enhancement: the target wants more than was granted",
			state:  manual + request(allow("*", "s3:GetObject")),
			target: request(allow("*", "s3:PutBucketPolicy", "s3:GetObject", "s3:CreateBucket")),
			want: checktest.Want{
				Outcome: preflight.Fail, Reason: "PermissionsMissing", Objects: []string{"openshift-image-registry"},
				Says: []string{"not granted: s3:CreateBucket on *, s3:PutBucketPolicy on *"},
				Remedies: []string{
					"oc adm release extract --from=quay.io/openshift-release-dev/ocp-release@sha256:",
					"oc annotate cloudcredential.operator.openshift.io/cluster cloudcredential.openshift.io/upgradeable-to=4.21.3 --overwrite",
				},
			},
		},
		"NewRequest": {
			reason: "of a request that is new, all is new",
			state:  manual,
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"OtherResource": {
			reason: "a permission is for a resource",
			state:  manual + request(allow("arn:aws:s3:::a-*", "s3:GetObject")),
			target: request(allow("arn:aws:s3:::a-1", "s3:GetObject"), allow("arn:aws:s3:::b-1", "s3:GetObject")),
			want:   missing("s3:GetObject on arn:aws:s3:::b-1"),
		},
		"Wildcard": {
			reason: "a wildcard grants all that it matches, in any case of letters, and no more",
			state:  manual + request(allow("*", "s3:Get*", "ec2:Describe?olumes")),
			target: request(allow("*", "S3:getobject", "s3:GetBucket*", "ec2:DescribeVolumes", "ec2:Describe*")),
			want:   missing("ec2:Describe* on *"),
		},
		"Dots": {
			reason: "what is special in a regular expression is not in IAM",
			state:  manual + request(allow("arn:aws:s3:::a.b", "s3:GetObject")),
			target: request(allow("arn:aws:s3:::a-b", "s3:GetObject")),
			want:   missing("s3:GetObject on arn:aws:s3:::a-b"),
		},
		"Condition": {
			reason: "what is granted under a condition is not granted without",
			state:  manual + request(`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			target: request(allow("*", "kms:Encrypt")),
			want:   missing("kms:Encrypt on *"),
		},
		"SameCondition": {
			reason: "under the same condition it is",
			state:  manual + request(`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			target: request(`{effect: Allow, action: ["kms:Encrypt"], resource: "*", policyCondition: {Bool: {"kms:GrantIsForAWSResource": "true"}}}`),
			want:   pass,
		},
		"Acknowledged": {
			reason: "the administrator says that the permissions for the minor version are there",
			state:  mode("Manual", "AWS", "4.21.0"),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"AcknowledgedWithV": {
			reason: "as with the operator, a v in front does not matter",
			state:  mode("Manual", "AWS", "v4.22"),
			target: request(allow("*", "s3:GetObject")),
			want:   pass,
		},
		"AcknowledgedBefore": {
			reason: "the acknowledgement of an earlier update does not count",
			state:  mode("Manual", "AWS", "4.20"),
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"AcknowledgedNonsense": {
			reason: "nor does one that is no version",
			state:  mode("Manual", "AWS", "yes"),
			target: request(allow("*", "s3:GetObject")),
			want:   missing("s3:GetObject on *"),
		},
		"Mint": {
			reason: "where the operator makes the credentials, it extends the permissions itself",
			state:  mode("Mint", "AWS", ""),
			target: request(allow("*", "s3:GetObject")),
			want:   checktest.Want{Outcome: preflight.Skipped, Reason: "NotApplicable", Says: []string{`in credentialsMode "Mint"`}},
		},
		"OtherPlatform": {
			reason: "permissions of another cloud are not understood, and that is not a pass",
			state:  mode("Manual", "Azure", ""),
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`the platform is "Azure"`),
		},
		"Deny": {
			reason: "a statement that is not understood is not a pass",
			state:  manual + request(allow("*", "*")),
			target: request(`{effect: Deny, action: ["s3:*"], resource: "*"}`),
			want:   unknown(`has a statement with effect "Deny"`),
		},
		"DenyInCluster": {
			reason: "on either side",
			state:  manual + request(allow("*", "*"), `{effect: Deny, action: ["s3:*"], resource: "*"}`),
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`has a statement with effect "Deny"`),
		},
		"OtherCloudsRequest": {
			reason: "a payload has the requests of all clouds; those of others are passed over, but none at all is not a pass",
			state:  manual,
			target: strings.ReplaceAll(request(), "AWSProviderSpec", "GCPProviderSpec"),
			want:   unknown("no CredentialsRequest for AWS"),
		},
		"OtherKind": {
			reason: "a file that holds something else is a mistake",
			state:  manual,
			target: strings.ReplaceAll(request(), "kind: CredentialsRequest", "kind: Other"),
			want:   unknown(`kind "Other" is not CredentialsRequest`),
		},
		"NoYAML": {
			reason: "so is one that cannot be parsed",
			state:  manual,
			target: "a: [",
			want:   unknown(`cannot read the CredentialsRequest in "0.yaml"`),
		},
		"NoConfiguration": {
			reason: "without the operator's configuration it cannot tell",
			target: request(allow("*", "s3:GetObject")),
			want:   unknown(`cloudcredentials.operator.openshift.io "cluster" not found`),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			state:  manual,
			target: request(allow("*", "s3:GetObject")),
			ask:    stage.AskAsStranger,
			want:   unknown(`cloudcredentials.operator.openshift.io "cluster" is forbidden`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, tc.state+secret("credentials"))
			ask := stage.Ask
			if tc.ask != nil {
				ask = tc.ask
			}
			ask(t, "CREDENTIALS_REQUESTS="+directory(t, tc.target)).Expect(t, tc.reason, "CloudPermissions", tc.want)
		})
	}
}

// The directory is set by the manifest of the Job, or by somebody on a laptop.
func TestCloudPermissionsWithoutDirectory(t *testing.T) {
	stage := newStage(t)
	stage.Apply(t, mode("Manual", "AWS", ""))
	stage.Ask(t).Expect(t, "without the target's requests it cannot tell", "CloudPermissions", checktest.Want{
		Outcome: preflight.Unknown, Reason: "CheckError", Says: []string{"CREDENTIALS_REQUESTS"},
	})
}

// What the release ships has to fit together: the requests, and the permission
// to look for the Secrets that they name.
func TestShippedRequests(t *testing.T) {
	stage := newStage(t)
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
		stage.Apply(t, file)
	}
	stage.Apply(t, mode("Manual", "AWS", ""))
	answer := stage.Ask(t, "CREDENTIALS_REQUESTS="+directory(t, files...))
	answer.Expect(t, "a cluster with these very requests grants them", "CloudPermissions", checktest.Want{
		Outcome: preflight.Pass, Reason: "Passed",
	})
	f := answer.Findings["CloudSecrets"]
	if f.Outcome != preflight.Fail || len(f.Objects) != len(files) {
		t.Errorf("without any Secret the check says %s of %d objects, want Fail of %d: %s", f.Outcome, len(f.Objects), len(files), f.Message)
	}
}

func TestJob(t *testing.T) {
	newStage(t).ExpectJob(t)
}

func TestCloudSecrets(t *testing.T) {
	stage := newStage(t)
	pass := checktest.Want{Outcome: preflight.Pass, Reason: "Passed"}
	missing := func(says string) checktest.Want {
		return checktest.Want{
			Outcome: preflight.Fail, Reason: "SecretMissing", Objects: []string{"installer-cloud-credentials"},
			Says:     []string{"Secret openshift-image-registry/installer-cloud-credentials, which CredentialsRequest openshift-image-registry of the target asks for, " + says},
			Remedies: []string{"oc create secret generic installer-cloud-credentials -n openshift-image-registry"},
		}
	}
	for name, tc := range map[string]struct {
		reason string
		state  string
		ask    func(*testing.T, ...string) checktest.Answer
		want   checktest.Want
	}{
		"Config": {
			reason: "ccoctl writes a config file, e.g. for STS",
			state:  secret("credentials"),
			want:   pass,
		},
		"AccessKey": {
			reason: "an administrator may write an access key",
			state:  secret("aws_access_key_id", "aws_secret_access_key"),
			want:   pass,
		},
		"Missing": {
			reason: "a component of the target would wait for its Secret, and the update with it",
			want:   missing("does not exist"),
		},
		"Empty": {
			reason: "a Secret without credentials is no better",
			state:  secret("region"),
			want:   missing("has neither credentials nor"),
		},
		"HalfAKey": {
			reason: "nor is half an access key",
			state:  secret("aws_access_key_id"),
			want:   missing("has neither credentials nor"),
		},
		"Forbidden": {
			reason: "without permission it cannot tell, and names what is missing",
			ask:    stage.AskAsStranger,
			want: checktest.Want{
				Outcome: preflight.Unknown, Reason: "CheckError",
				Says: []string{`cloudcredentials.operator.openshift.io "cluster" is forbidden`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			stage.Apply(t, mode("Manual", "AWS", "4.21")+tc.state)
			ask := stage.Ask
			if tc.ask != nil {
				ask = tc.ask
			}
			answer := ask(t, "CREDENTIALS_REQUESTS="+directory(t, request(allow("*", "s3:GetObject"))))
			answer.Expect(t, tc.reason, "CloudSecrets", tc.want)
			if strings.Contains(answer.Output, "secret-value") {
				t.Errorf("%s: but the credentials are nobody's business:\n%s", tc.reason, answer.Output)
			}
		})
	}
}
