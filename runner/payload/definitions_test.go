package payload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// crdWith is a CustomResourceDefinition with these annotations, as YAML.
func crdWith(name, annotations string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + ", annotations: {" + annotations +
		"}}\nspec: {group: example.com}\n"
}

const inProfile = `include.release.openshift.io/self-managed-high-availability: "true"`

func TestExtractReadsDefinitions(t *testing.T) {
	t.Parallel()
	type read struct {
		Name, Cause string
		Deleted     bool
	}
	for name, tc := range map[string]struct {
		reason    string
		manifests []string
		want      []read
		problem   string
	}{
		"none":    {reason: "a release may have none"},
		"applied": {reason: "the profile includes it", manifests: []string{crdWith("a", inProfile)}, want: []read{{Name: "a"}}},
		"other profile": {
			reason: "the cluster-version operator applies a definition only with the annotation of the profile",
			manifests: []string{
				crdWith("a", ""), crdWith("b", `include.release.openshift.io/ibm-cloud-managed: "true"`),
				crdWith("c", strings.Replace(inProfile, `"true"`, `"false"`, 1)),
			},
		},
		"feature gates": {
			reason: "the gate On is enabled",
			manifests: []string{
				crdWith("a", inProfile+", release.openshift.io/feature-gate: On"),
				crdWith("b", inProfile+", release.openshift.io/feature-gate: Off"),
			},
			want: []read{{Name: "a"}},
		},
		"unreadable filter": {
			reason:    "a filter that cannot be evaluated does not exclude",
			manifests: []string{crdWith("a", inProfile+", release.openshift.io/feature-set: New")},
			want: []read{
				{Name: "a", Cause: `CustomResourceDefinition.apiextensions.k8s.io /a is for feature set "New", which is not one of Default, CustomNoUpgrade, DevPreviewNoUpgrade, OKD, TechPreviewNoUpgrade; the cluster-version operator does not apply such manifests`},
			},
		},
		"deleted": {
			reason: "the operator deletes it", manifests: []string{crdWith("a", inProfile+`, release.openshift.io/delete: "true"`)},
			want: []read{{Name: "a", Deleted: true}},
		},
		"replaced": {
			reason:    "the last manifest of a name wins",
			manifests: []string{crdWith("a", inProfile), crdWith("b", inProfile), crdWith("a", inProfile+`, release.openshift.io/delete: "true"`)},
			want:      []read{{Name: "b"}, {Name: "a", Deleted: true}},
		},
		"other version": {
			reason:    "the API server does not serve it",
			manifests: []string{strings.Replace(crdWith("a", inProfile), "/v1", "/v1beta1", 1)},
			want:      []read{{Name: "a", Cause: "its apiVersion is apiextensions.k8s.io/v1beta1, which the API server does not serve"}},
		},
		"alias": {
			reason: "aliases may expand without bounds", manifests: []string{crdWith("a", inProfile) + "x: &a [b]\ny: *a\n"},
			want: []read{{Name: "a", Cause: "the manifest has an alias in line 6 of the document"}},
		},
		"deep": {
			reason: "recursion is bounded", manifests: []string{crdWith("a", inProfile) + "x: " + strings.Repeat("[", 300) + strings.Repeat("]",
				300)},
			want: []read{{Name: "a", Cause: "the manifest is nested more than 200 levels deep"}},
		},
		"other kinds": {reason: "only definitions", manifests: []string{strings.Replace(crdWith("a", inProfile), "CustomResourceDefinition",
			"Other", 1), strings.Replace(crdWith("b", inProfile), "apiextensions.k8s.io", "example.com", 1)}},
		"too many": {
			reason:    "above the limit none is returned rather than some",
			manifests: tooMany(),
			problem:   "Unknown TooManyDefinitions Payload.Q",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var entries []entry
			for i, manifest := range tc.manifests {
				entries = append(entries, entry{name: "release-manifests/" + string(rune('a'+i)) + ".yaml", content: manifest})
			}
			release, err := extractLayer(t, releaseWith(t, entries...))
			if err != nil {
				t.Fatal(err)
			}
			var got []read
			for _, definition := range release.Definitions {
				got = append(got, read{definition.Name, definition.Cause, definition.Deleted})
				decoded, err := definition.Decode()
				if (err != nil) != (definition.Cause != "") || err == nil && decoded.Name != definition.Name {
					t.Errorf("%s: decoded as %v: %v", tc.reason, decoded, err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if problems := strings.Join(summarize(release).Problems, ", "); problems != tc.problem {
				t.Errorf("%s: problems %q, want %q", tc.reason, problems, tc.problem)
			}
		})
	}
}

// tooMany are definitions of 51 MiB.
func tooMany() []string {
	var all []string
	for range 17 {
		all = append(all, crdWith("a", inProfile)+"x: "+strings.Repeat("x", 3<<20-1<<10))
	}
	return all
}

func TestExtractReadsImagePolicies(t *testing.T) {
	t.Parallel()
	policyWith := func(name, annotations string) string {
		return "apiVersion: config.openshift.io/v1\nkind: ClusterImagePolicy\nmetadata: {name: " + name + ", annotations: {" + annotations +
			"}}\nspec: {scopes: [quay.io/openshift-release-dev/ocp-release]}\n"
	}
	release, err := extractLayer(t, releaseWith(t, entry{name: "release-manifests/a.yaml", content: strings.Join([]string{
		policyWith("applied", inProfile), policyWith("off", inProfile+", release.openshift.io/feature-gate: Off"), policyWith("profile", ""),
		policyWith("deleted", inProfile+`, release.openshift.io/delete: "true"`),
		policyWith("unsure", inProfile+", release.openshift.io/feature-set: New"),
		strings.Replace(policyWith("alpha", inProfile), "/v1", "/v1alpha1", 1),
	}, "---\n")}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, each := range release.ImagePolicies {
		state := "brought"
		switch {
		case each.Cause != "":
			state = "unsure"
		case each.Deleted:
			state = "deleted"
		}
		got = append(got, each.Name+": "+state)
	}
	if diff := cmp.Diff([]string{"applied: brought", "deleted: deleted", "unsure: unsure", "alpha: unsure"}, got); diff != "" ||
		len(release.Definitions) > 0 {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestExtractReadsImageStreams(t *testing.T) {
	t.Parallel()
	streamWith := func(namespace, name, annotations string) string {
		return "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {namespace: " + namespace + ", name: " + name +
			", annotations: {" + annotations + "}}\n"
	}
	release, err := extractLayer(t, releaseWith(t, entry{name: "release-manifests/a.yaml", content: strings.Join([]string{
		streamWith("openshift", "cli", inProfile), streamWith("other", "cli", inProfile), streamWith("openshift", "profile", ""),
		streamWith("openshift", "off", inProfile+", capability.openshift.io/name: Off"),
		strings.Replace(streamWith("openshift", "legacy", inProfile), "image.openshift.io/", "", 1),
		streamWith("openshift", "deleted", inProfile+`, release.openshift.io/delete: "true"`),
		streamWith("openshift", "unsure", inProfile+", release.openshift.io/feature-set: New"),
	}, "---\n")}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, each := range release.ImageStreams {
		state := "applied"
		switch {
		case each.Cause != "":
			state = "unsure"
		case each.Deleted:
			state = "deleted"
		}
		got = append(got, each.Namespace+"/"+each.Name+": "+state)
	}
	want := []string{"openshift/cli: applied", "other/cli: applied", "openshift/deleted: deleted", "openshift/unsure: unsure"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("by namespace and name, without the list of images; -want +got:\n%s", diff)
	}
}
