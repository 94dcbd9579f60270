package preflighttest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/preflight-sdk/preflighttest"
)

func TestManifest(t *testing.T) {
	const program = "./testdata/program"
	options := preflight.ManifestOptions{
		Name: "etcd-preflight", Namespace: "openshift-etcd", Image: "quay.io/openshift/origin-cluster-etcd-operator:latest",
	}
	file := filepath.Join(t.TempDir(), "job.yaml")
	t.Setenv("UPDATE_GOLDEN", "1")
	r := recorded(t, func(r *record) { preflighttest.Manifest(r, program, file, options) })
	r.expect(t, "UPDATE_GOLDEN writes the manifest", end{output: []string{"wrote "}})
	t.Setenv("UPDATE_GOLDEN", "")
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{`["pods"]`, `["secrets"]`} {
		if !strings.Contains(string(written), "resources: "+resource) {
			t.Errorf("the manifest grants the rules of every check of main; no %s in\n%s", resource, written)
		}
	}

	for name, tc := range map[string]struct {
		reason  string
		program string
		content string
		options preflight.ManifestOptions
		end     end
	}{
		"Same": {
			reason:  "the manifest is what the program prints",
			program: program, content: string(written), options: options,
		},
		"RuleMissing": {
			reason:  "a rule of main's second check that the manifest does not grant is a difference",
			program: program, content: strings.ReplaceAll(string(written), "secrets", "configmaps"), options: options,
			end: end{failed: true, output: []string{"job.yaml:", "secrets", "UPDATE_GOLDEN=1"}},
		},
		"OtherOptions": {
			reason:  "the options are part of the manifest",
			program: program, content: string(written), options: preflight.ManifestOptions{Name: "other", Namespace: options.Namespace, Image: options.Image},
			end: end{failed: true, output: []string{"job.yaml:2: ", "--name=other"}},
		},
		"InvalidOptions": {
			reason:  "the error of the program names the invalid option",
			program: program, content: string(written), options: preflight.ManifestOptions{Name: "Not a label", Namespace: options.Namespace, Image: options.Image},
			end: end{failed: true, output: []string{"cannot print the manifest of the program ./testdata/program", `name "Not a label"`}},
		},
		"DoesNotCompile": {
			reason:  "the error of the compiler is in the log of the test",
			program: "./testdata/broken", content: string(written), options: options,
			end: end{failed: true, output: []string{"cannot build the program ./testdata/broken", "undefined: undefined"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "testdata", "job.yaml")
			write(t, file, tc.content)
			r := recorded(t, func(r *record) { preflighttest.Manifest(r, tc.program, file, tc.options) })
			r.expect(t, tc.reason, tc.end)
		})
	}
}
