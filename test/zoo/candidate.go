package zoo

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/release"
)

// Candidate is an animal whose manifest is not part of a release.
type Candidate struct {
	Animal
	// Root builds an image that runs as root.
	Root bool
	// Endless is true for a check that does not end by itself: its trials take as long as
	// the default timeout. Those of other checks have more time, for a busy node.
	Endless bool
}

// NamespaceOf returns the namespace of the candidate of a test.
func NamespaceOf(tb testing.TB) string {
	tb.Helper()
	return "zoo-" + strings.ToLower(filepath.Base(tb.Name()))
}

// Manifest writes the manifest of a candidate, whose image has a tag, to a file, and
// returns the arguments of "oc-preflight conformance" for it.
func (z *Zoo) Manifest(tb testing.TB, c Candidate) []string {
	tb.Helper()
	c.Namespace = NamespaceOf(tb)
	text, err := yaml.Marshal(c.Job("candidate"))
	if err != nil {
		tb.Fatal(err)
	}
	beside := strings.ReplaceAll(c.Beside, "CAGE", c.Namespace)
	file := filepath.Join(tb.TempDir(), "0000_50_zoo_11_candidate.yaml")
	if err := os.WriteFile(file, []byte(string(text)+"---\n"+beside), 0o600); err != nil {
		tb.Fatal(err)
	}
	image := z.Image(tb, "zoo", "test/e2e/zoo")
	if c.Root {
		image = z.rootImage(tb)
	}
	args := []string{file, "--image", Source + "=" + image}
	if !c.Endless {
		args = append(args, "--timeout", "5m")
	}
	return args
}

func (z *Zoo) rootImage(tb testing.TB) string {
	tb.Helper()
	binary, err := z.Binaries.Build(tb.Context(), "test/e2e/zoo")
	if err != nil {
		tb.Fatal(err)
	}
	image, err := release.BuildImage(tb.Context(), z.cluster.Registry, "zoo-root", release.Image{
		Files: map[string]release.File{"bin/preflight": {Mode: 0o755, Data: binary}}, Config: v1.Config{User: "0"},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return image
}

// Annotated is the annotation that makes an object part of a preflight, as further
// fields of its metadata.
const Annotated = `, annotations: {openshift.io/preflight-check: "true"}`

// Access returns the documents that grant the ServiceAccount "candidate" these verbs on
// ConfigMaps in the namespace CAGE. Annotations are further fields of their metadata.
func Access(verbs, annotations string) string {
	meta := "metadata: {name: candidate, namespace: CAGE" + annotations + "}"
	return fmt.Sprintf(`{apiVersion: v1, kind: ServiceAccount, %[1]s}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, %[1]s, rules: [{apiGroups: [""], resources: [configmaps], verbs: [%[2]s]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, %[1]s,
 roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: candidate},
 subjects: [{kind: ServiceAccount, name: candidate, namespace: CAGE}]}
`, meta, verbs)
}

// AsCandidate makes a Job run as the ServiceAccount of Access.
func AsCandidate(job *batchv1.Job) { job.Spec.Template.Spec.ServiceAccountName = "candidate" }
