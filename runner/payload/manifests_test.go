package payload_test

import (
	"io"
	"log"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/types"
	configv1 "github.com/openshift/api/config/v1"

	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
	access "github.com/openshift/update-preflight/runner/registry"
)

// objectWith is an object of a kind, in namespace n, with these annotations beside that of the profile.
func objectWith(kind, name, annotations string) string {
	version := map[string]string{"Deployment": "apps/v1", "FeatureGate": "config.openshift.io/v1"}[kind]
	if version == "" {
		version = "v1"
	}
	return "apiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: n, annotations: {" +
		inProfile + annotations + "}}\n"
}

// TestExtractReadsManifests reads the manifests of all kinds, for a cluster with one capability of two and one override.
func TestExtractReadsManifests(t *testing.T) {
	t.Parallel()
	const major = ", release.openshift.io/major-version: "
	for name, tc := range map[string]struct {
		reason    string
		manifests []string
		want      []string
		cause     string
	}{
		"kinds": {
			reason:    "all kinds, in the order of the files, a list of documents in theirs",
			manifests: []string{objectWith("Service", "b", ""), objectWith("ConfigMap", "a", "") + "---\n" + objectWith("Deployment", "c", "")},
			want:      []string{"v1 Service n/b", "v1 ConfigMap n/a", "apps/v1 Deployment n/c"},
		},
		"same name": {reason: "another kind is another object", manifests: []string{
			objectWith("Service", "a", ""),
			objectWith("ConfigMap", "a", ""),
		}, want: []string{"v1 Service n/a", "v1 ConfigMap n/a"}},
		"no profile": {
			reason:    "CVO applies no manifest without a profile",
			manifests: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: n}\n"},
		},
		"unmanaged": {reason: "an override of ClusterVersion", manifests: []string{
			objectWith("Deployment", "unmanaged", ""),
			objectWith("Deployment", "managed", ""),
		}, want: []string{"apps/v1 Deployment n/managed"}},
		"deleted": {
			reason: "CVO deletes it", manifests: []string{objectWith("ConfigMap", "a", `, release.openshift.io/delete: "true"`)},
			want: []string{"v1 ConfigMap n/a deleted"},
		},
		"capability": {
			reason: "an object of a disabled capability is written where it exists",
			manifests: []string{objectWith("ConfigMap", "a", ", capability.openshift.io/name: Console"), objectWith("ConfigMap", "b",
				", capability.openshift.io/name: Storage"), objectWith("ConfigMap", "c", ", capability.openshift.io/name: New")},
			want: []string{"v1 ConfigMap n/a", "v1 ConfigMap n/b if present", "v1 ConfigMap n/c if present"},
		},
		"capability and profile": {
			reason:    "the other filters hold for it, too",
			manifests: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {capability.openshift.io/name: Storage}}\n"},
		},
		"major version": {
			reason: "the major version of the release is 4",
			manifests: []string{
				objectWith("FeatureGate", "a", major+`"4"`), objectWith("FeatureGate", "b", major+`"5"`), objectWith("FeatureGate", "c", major+`"-5"`),
				objectWith("FeatureGate", "d", major+`"-4"`),
				objectWith("FeatureGate", "e", major+`"4, 5"`), objectWith("FeatureGate", "f", major+`"4,-4"`),
				objectWith("FeatureGate", "g", major+`"x"`), objectWith("FeatureGate", "h", major+`""`),
				objectWith("ConfigMap", "i", major+`"4"`),
			},
			want: []string{
				"config.openshift.io/v1 FeatureGate n/a", "config.openshift.io/v1 FeatureGate n/c", "config.openshift.io/v1 FeatureGate n/e",
				"config.openshift.io/v1 FeatureGate n/h",
			},
		},
		"alias": {
			reason: "aliases may expand without bounds", manifests: []string{objectWith("ConfigMap", "a", "") + "x: &a [b]\ny: *a\n"},
			want: []string{"v1 ConfigMap n/a"}, cause: "the manifest has an alias in line 5 of the document",
		},
		"no name": {
			reason:    "an object without a name is a problem of the release",
			manifests: []string{"apiVersion: v1\nkind: ConfigMap\nmetadata: {annotations: {" + inProfile + "}}\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, each := range manifestsOf(t, tc.manifests) {
				text := each.Kind.GroupVersion().String() + " " + each.Kind.Kind + " " + each.Namespace + "/" + each.Name
				if each.Deleted {
					text += " deleted"
				}
				if each.IfPresent {
					text += " if present"
				}
				object, err := each.Object()
				if each.Cause != tc.cause || (err != nil) != (tc.cause != "") || err == nil && object.GetName() != each.Name {
					t.Errorf("%s: %s: decoded as %v: %v", tc.reason, text, object, err)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func manifestsOf(t *testing.T, manifests []string) []payload.Definition {
	t.Helper()
	var entries []entry
	for i, manifest := range manifests {
		entries = append(entries, entry{name: "release-manifests/" + string(rune('a'+i)) + ".yaml", content: manifest})
	}
	client := direct{registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	layer := releaseWith(t, entries...)
	putBlob(t, client, "127.0.0.1:1", layer)
	pullSpec := putManifest(t, client, "127.0.0.1:1", types.DockerManifestSchema2, imageOf(t, nil, layer))
	release, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{
		Access: access.Own(t.Context(), access.Local{Transport: client}), Manifests: true,
		Cluster: manifestfilter.Cluster{
			Features: &manifestfilter.Features{},
			Capabilities: &configv1.ClusterVersionCapabilitiesStatus{
				EnabledCapabilities: []configv1.ClusterVersionCapability{"Console"},
				KnownCapabilities:   []configv1.ClusterVersionCapability{"Console", "Storage"},
			},
			Overrides: []configv1.ComponentOverride{{Kind: "Deployment", Group: "apps", Namespace: "n", Name: "unmanaged", Unmanaged: true}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return release.Manifests
}
