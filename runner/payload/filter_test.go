package payload_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/payload"
	"github.com/openshift/update-preflight/runner/payload/manifestfilter"
)

// Tests of: runner/payload/manifestfilter

// TestExtractFilters expects the filters of the cluster-version operator
// (openshift/library-go pkg/manifest).
func TestExtractFilters(t *testing.T) {
	t.Parallel()
	const (
		set, gate = "release.openshift.io/feature-set", "release.openshift.io/feature-gate"
		exclude   = "exclude.release.openshift.io/"
		capable   = "capability.openshift.io/name"
		side      = "openshift.io/preflight-side"
	)
	known := manifestfilter.Cluster{
		Exclude:  "internal-openshift-hosted",
		Features: &manifestfilter.Features{Enabled: []configv1.FeatureGateName{"On", "AlsoOn"}},
		Capabilities: &configv1.ClusterVersionCapabilitiesStatus{
			EnabledCapabilities: []configv1.ClusterVersionCapability{"Console", "Storage"},
			KnownCapabilities:   []configv1.ClusterVersionCapability{"Console", "Storage", "Insights"},
		},
	}
	preview := known
	preview.Features = &manifestfilter.Features{Set: configv1.TechPreviewNoUpgrade}
	overriding := func(overrides ...configv1.ComponentOverride) *manifestfilter.Cluster {
		return &manifestfilter.Cluster{Overrides: overrides}
	}
	unmanaged := configv1.ComponentOverride{Group: "batch", Kind: "Job", Namespace: "ns", Name: "job", Unmanaged: true}
	managed := unmanaged
	managed.Unmanaged = false
	changed := func(change func(*configv1.ComponentOverride)) *manifestfilter.Cluster {
		other := unmanaged
		change(&other)
		return overriding(other)
	}
	for name, tc := range map[string]struct {
		reason      string
		annotations []string // key and value in turn
		cluster     *manifestfilter.Cluster
		outcome     preflight.Outcome
		want        string
		text        string
	}{
		"None": {reason: "no filter applies"},

		"Excluded": {
			reason: "the annotation names the cluster", annotations: []string{exclude + "internal-openshift-hosted", "true"},
			outcome: preflight.Skipped, want: "Excluded",
		},
		"Excluded elsewhere": {reason: "the annotation names another cluster", annotations: []string{exclude + "other", "true"}},
		"Excluded otherwise": {reason: "only the value true excludes", annotations: []string{exclude + "internal-openshift-hosted", "True"}},
		"Excluded unnamed": {
			reason: "the annotation without a suffix applies to an unnamed cluster", annotations: []string{exclude, "true"},
			cluster: &manifestfilter.Cluster{}, outcome: preflight.Skipped, want: "Excluded",
		},

		"Default set":        {reason: "a cluster without a set has the default one", annotations: []string{set, "Default"}},
		"Default among sets": {reason: "one of several sets is sufficient", annotations: []string{set, "TechPreviewNoUpgrade,Default"}},
		"Other set": {
			reason: "the manifest is for previews", annotations: []string{set, "TechPreviewNoUpgrade,DevPreviewNoUpgrade"},
			outcome: preflight.Skipped, want: "OtherFeatureSet", text: "the cluster has Default",
		},
		"Preview": {reason: "the cluster is a preview", annotations: []string{set, "TechPreviewNoUpgrade"}, cluster: &preview},
		"Default of preview": {
			reason: "the manifest is not for previews", annotations: []string{set, "Default"}, cluster: &preview,
			outcome: preflight.Skipped, want: "OtherFeatureSet", text: "TechPreviewNoUpgrade",
		},
		"Unknown set": {
			reason: "the operator leaves it out; the finding names the spelling", annotations: []string{set, "Nope"},
			outcome: preflight.Skipped, want: "UnknownFeatureSet", text: `"Nope"`,
		},
		"Blank before set": {
			reason: "the operator does not trim blanks in sets", annotations: []string{set, "Default, TechPreviewNoUpgrade"},
			outcome: preflight.Skipped, want: "UnknownFeatureSet", text: `" TechPreviewNoUpgrade"`,
		},
		"Empty set": {
			reason: "the value names no set", annotations: []string{set, ""}, outcome: preflight.Skipped,
			want: "UnknownFeatureSet",
		},
		"Set, unknown": {
			reason: "the features of the cluster could not be read", annotations: []string{set, "Default"},
			cluster: &manifestfilter.Cluster{}, outcome: preflight.Unknown, want: "FeaturesUnknown",
		},
		"Set and gate": {
			reason: "the operator rejects both filters together", annotations: []string{set, "Default", gate, "On"},
			outcome: preflight.Skipped, want: "ContradictoryFilters",
		},
		"Gate on":  {reason: "the gate is enabled", annotations: []string{gate, "On"}},
		"Gates on": {reason: "blanks in gates are trimmed", annotations: []string{gate, "On, AlsoOn , -Off"}},
		"Gate off": {
			reason: "the gate is disabled", annotations: []string{gate, "On,Off"}, outcome: preflight.Skipped,
			want: "FeatureGateDisabled", text: "gate Off to be enabled",
		},
		"Gate must be off": {
			reason: "the gate is enabled", annotations: []string{gate, "-On"}, outcome: preflight.Skipped,
			want: "FeatureGateEnabled", text: "gate On to be disabled",
		},
		"Gate without a name": {reason: "the operator ignores empty items", annotations: []string{gate, "On,,"}},
		"Gates, none":         {reason: "an empty list requires nothing", annotations: []string{gate, ""}},
		"Minus nothing":       {reason: "no gate is without a name, so none is enabled", annotations: []string{gate, "-"}},
		"Gate, unknown": {
			reason: "the features of the cluster could not be read", annotations: []string{gate, "On"},
			cluster: &manifestfilter.Cluster{}, outcome: preflight.Unknown, want: "FeaturesUnknown",
		},

		"Major version": {
			reason: "the operator does not apply it to Jobs", annotations: []string{"release.openshift.io/major-version", "5"},
			outcome: preflight.Skipped, want: "MajorVersionFilter",
		},

		"Capability":   {reason: "the capability is enabled", annotations: []string{capable, "Console"}},
		"Capabilities": {reason: "all capabilities are enabled", annotations: []string{capable, "Console+Storage"}},
		"Capability disabled": {
			reason: "one capability is disabled", annotations: []string{capable, "Console+Insights"},
			outcome: preflight.Skipped, want: "CapabilityDisabled", text: "Insights",
		},
		"Capability new": {
			reason: "a new capability of the target is disabled", annotations: []string{capable, "Quantum"},
			outcome: preflight.Skipped, want: "CapabilityNotKnown", text: "Quantum",
		},
		"Capability without a name": {
			reason:      "no capability is without a name, so the operator takes it for a disabled one",
			annotations: []string{capable, "Console+"}, outcome: preflight.Skipped, want: "CapabilityNotKnown",
		},
		"Capabilities, none": {reason: "an empty list requires nothing", annotations: []string{capable, ""}},
		"Capability, unknown": {
			reason: "an old cluster has no capabilities", annotations: []string{capable, "Console"},
			cluster: &manifestfilter.Cluster{}, outcome: preflight.Unknown, want: "CapabilitiesUnknown",
		},

		"Management": {reason: "a cluster that is not hosted is both sides", annotations: []string{side, "management"}},
		"Management, alone": {
			reason: "the guest has nothing that the check reads", annotations: []string{side, "management"},
			cluster: &manifestfilter.Cluster{Hosted: true}, outcome: preflight.Unknown, want: "ManagementSide",
			text: "which this preflight of the guest does not know",
		},
		"Management, known": {
			reason: "the check runs in the management cluster", annotations: []string{side, "management"},
			cluster: &manifestfilter.Cluster{Hosted: true, Management: true},
		},
		"Guest, hosted": {
			reason: "checks run in the guest", annotations: []string{side, "guest"},
			cluster: &manifestfilter.Cluster{Hosted: true},
		},
		"Unknown side": {
			reason: "a typing error must not run the check on the wrong side", annotations: []string{side, "Management"},
			outcome: preflight.Unknown, want: "UnknownSide",
		},

		"Delete": {
			reason: "an object to be deleted is never run", annotations: []string{"release.openshift.io/delete", "false"},
			outcome: preflight.Fail, want: "DeleteAnnotation",
		},
		"Create": {reason: "the annotation is not a filter", annotations: []string{"release.openshift.io/create-only", "true"}},

		"Overridden": {
			reason: "the administrator manages the object", cluster: overriding(unmanaged), outcome: preflight.Skipped,
			want: "Overridden",
		},
		"Managed":       {reason: "an override with unmanaged false does not exclude", cluster: overriding(managed)},
		"Managed first": {reason: "of two overrides of one object CVO takes the first", cluster: overriding(managed, unmanaged)},
		"Unmanaged first": {
			reason: "of two overrides of one object CVO takes the first", cluster: overriding(unmanaged, managed),
			outcome: preflight.Skipped, want: "Overridden",
		},
		"Other kind": {
			reason:  "the override is for another object",
			cluster: changed(func(o *configv1.ComponentOverride) { o.Kind = "Deployment" }),
		},
		"Other group": {
			reason:  "the override is for another object",
			cluster: changed(func(o *configv1.ComponentOverride) { o.Group = "apps" }),
		},
		"Other namespace": {
			reason:  "the override is for another object",
			cluster: changed(func(o *configv1.ComponentOverride) { o.Namespace = "other" }),
		},
		"Other name": {
			reason:  "the override is for another object",
			cluster: changed(func(o *configv1.ComponentOverride) { o.Name = "other" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := &known
			if tc.cluster != nil {
				cluster = tc.cluster
			}
			const before = "---\n# the first document is empty\n---\n"
			var lines strings.Builder
			for i := 0; i < len(tc.annotations); i += 2 {
				lines.WriteString("    " + tc.annotations[i] + ": " + strconv.Quote(tc.annotations[i+1]) + "\n")
			}
			manifest := before + strings.Replace(jobIn("ns", "job"), "  annotations:\n", "  annotations:\n"+lines.String(), 1)
			got := extractFor(t, *cluster, manifest)
			if tc.want == "" {
				if len(got.Jobs) != 1 || len(got.Problems) > 0 {
					t.Errorf("%s: %+v, want it kept", tc.reason, got.Problems)
				}
				return
			}
			if len(got.Jobs) > 0 || len(got.Problems) != 1 {
				t.Fatalf("%s: %d Jobs, %+v; want one problem", tc.reason, len(got.Jobs), got.Problems)
			}
			problem := got.Problems[0]
			if problem.Outcome != tc.outcome || problem.Reason != tc.want || !strings.Contains(problem.Message, tc.text) ||
				!strings.Contains(problem.Message, "Job.batch ns/job") {
				t.Errorf("%s: %s %s %q, want %s %s with %q", tc.reason, problem.Outcome, problem.Reason, problem.Message, tc.outcome, tc.want, tc.text)
			}
			evidence := map[string]string{"file": "job.yaml", "document": "2", "line": "3"}
			if len(tc.annotations) > 0 {
				evidence["line"], evidence["annotation"] = "10", tc.annotations[0]
			}
			if diff := cmp.Diff(evidence, problem.Evidence); diff != "" {
				t.Errorf("%s: evidence (-want, +got):\n%s", tc.reason, diff)
			}
			checkFinding(t, problem, "job.yaml")
		})
	}
}

// extractFor reads a release with that manifest for a cluster.
func extractFor(t *testing.T, cluster manifestfilter.Cluster, manifest string) *payload.Release {
	t.Helper()
	pullSpec := pushLayer(t, serve(t, nil), releaseWith(t, entry{name: "release-manifests/job.yaml", content: manifest}))
	got, err := payload.Extract(t.Context(), forced(t, pullSpec), payload.Options{Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestFiltersApplyToSupportingObjects expects the same filters for supporting objects
// as for Jobs.
func TestFiltersApplyToSupportingObjects(t *testing.T) {
	t.Parallel()
	account := `apiVersion: v1
kind: ServiceAccount
metadata: {name: a, namespace: ns, annotations: {openshift.io/preflight-check: "true", capability.openshift.io/name: Console}}
`
	got := extractFor(t, manifestfilter.Cluster{Capabilities: &configv1.ClusterVersionCapabilitiesStatus{}}, account)
	if len(got.Supporting) > 0 || len(got.Problems) != 1 || got.Problems[0].Reason != "CapabilityNotKnown" {
		t.Errorf("kept %+v, problems %+v; want it skipped", got.Supporting, got.Problems)
	}
}

// TestSourceIsNotFiltered expects that manifests without a release apply to every
// cluster.
func TestSourceIsNotFiltered(t *testing.T) {
	manifest := strings.Replace(jobIn("ns", "job"), "  annotations:\n", "  annotations:\n    release.openshift.io/feature-gate: Some\n", 1)
	got, err := payload.ReadManifests(map[string][]byte{"job.yaml": []byte(manifest)})
	if err != nil || len(got.Jobs) != 1 || len(got.Problems) > 0 {
		t.Errorf("%+v, %v; want the Job", got, err)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	got := extractFor(t, manifestfilter.Cluster{}, "# comment\n---\n"+jobIn("ns", "job"))
	if len(got.Jobs) != 1 {
		t.Fatalf("problems %+v", got.Problems)
	}
	for path, want := range map[string]int{
		"": 3, "metadata.name": 6, "spec.template.spec.containers[0]": 15, "spec.template.spec.containers[0].image": 16,
		"spec.template.spec.containers[0].securityContext.privileged": 15, "spec.suspend": 10, "nowhere": 3,
	} {
		if line := got.Jobs[0].Lines.Of(path); line != want {
			t.Errorf("%q is in line %d, want %d", path, line, want)
		}
	}
	if line := (payload.Job{}).Lines.Of("spec"); line != 0 {
		t.Errorf("line %d of an object without a file", line)
	}
}
