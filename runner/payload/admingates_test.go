package payload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const gatesHead = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates, namespace: openshift-config-managed}\n"

func TestExtractReadsAdminGates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		manifests []entry
		want      map[string]string
		problem   string
	}{
		"none": {reason: "most releases have no gates"},
		"gates": {
			reason: "a description may have lines",
			manifests: []entry{{
				name:    "0000_00_admingate.yaml",
				content: gatesHead + "data:\n  ack-4.20-x: |\n    Do this.\n    Then that.\n  ack-4.20-y: ''\n",
			}},
			want: map[string]string{"ack-4.20-x": "Do this.\nThen that.\n", "ack-4.20-y": ""},
		},
		"several files": {
			reason: "several components have gates, and CVO applies the files in the order of their names",
			manifests: []entry{
				{name: "0000_50_b.yaml", content: gatesHead + "data: {ack-4.20-x: last, ack-4.20-b: b}"},
				{name: "0000_00_a.yaml", content: "kind: Other\nmetadata: {name: o}\n---\n" + gatesHead + "data: {ack-4.20-x: first, ack-4.20-a: a}"},
			},
			want: map[string]string{"ack-4.20-x": "last", "ack-4.20-a": "a", "ack-4.20-b": "b"},
		},
		"others": {
			reason: "neither the acks nor another ConfigMap of that name count",
			manifests: []entry{
				{name: "a.yaml", content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-acks, namespace: openshift-config}\ndata: " +
					"{ack-4.20-x: 'true'}"},
				{name: "b.yaml", content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: admin-gates, namespace: elsewhere}\ndata: " +
					"{ack-4.20-x: text}"},
				{name: "c.yaml", content: "apiVersion: v1\nkind: Secret\nmetadata: {name: admin-gates, namespace: " +
					"openshift-config-managed}\ndata: {ack-4.20-x: text}"},
			},
		},
		"no data": {reason: "no gates", manifests: []entry{{name: "a.yaml", content: gatesHead}}, want: map[string]string{}},
		"malformed": {
			reason: "data is not a mapping", manifests: []entry{{name: "a.yaml", content: gatesHead + "data: [a, b]"}},
			want: map[string]string{},
		},
		"no text": {
			reason:    "a description that is not a string is empty",
			manifests: []entry{{name: "a.yaml", content: gatesHead + "data: {ack-4.20-x: [a]}"}}, want: map[string]string{"ack-4.20-x": ""},
		},
		"too many": {
			reason: "above the limit no gate is reported",
			manifests: []entry{
				{name: "a.yaml", content: gatesHead + "data: {ack-4.20-a: a}"},
				{name: "b.yaml", content: gatesHead + "data: {ack-4.20-b: " + strings.Repeat("b", 256<<10) + "}"},
			},
			problem: "Warn TooManyAdminGates",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range tc.manifests {
				tc.manifests[i].name = "release-manifests/" + tc.manifests[i].name
			}
			got, err := extractLayer(t, releaseWith(t, tc.manifests...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.AdminGates); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			problems := strings.Join(summarize(got).Problems, ", ")
			if (tc.problem == "") != (problems == "") || !strings.HasPrefix(problems, tc.problem) {
				t.Errorf("%s: problems %q, want %q", tc.reason, problems, tc.problem)
			}
		})
	}
}
