// Package recipes_test answers: does the script of every recipe for a CI system run a
// preflight, return the exit code of its decision, and write its reports?
package recipes_test

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/documents"
	"github.com/openshift/update-preflight/test/exit"
	"github.com/openshift/update-preflight/test/zoo"
)

var (
	local       *cluster.Cluster
	testCluster *zoo.Zoo
)

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local, testCluster = c, zoo.WithoutContainers(c) }, cluster.ControlPlaneOnly())
}

const (
	root = "../.."
	page = "cmd/oc-preflight/CI.md"
	// gate is the name of a closed admin gate, by which the decision is Blocked.
	gate = "ack-5.1-recipes"
)

// block returns the text of the only block of a section in a language.
func block(t *testing.T, section, language string) string {
	t.Helper()
	text, err := documents.Read(root, page)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, each := range documents.Blocks(text) {
		if each.Section == section && each.Language == language {
			found = append(found, each.Text)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s: section %q has %d blocks of %s, want 1", page, section, len(found), language)
	}
	return found[0]
}

// parse decodes the YAML of a section. Unknown fields are errors.
func parse(t *testing.T, section string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block(t, section, "yaml")), into); err != nil {
		t.Fatalf("%s: section %q: %v", page, section, err)
	}
}

// workflow has the fields of a GitHub Actions workflow that the recipe uses.
type workflow struct {
	Name string `json:"name"`
	// On is the key "on", which is a boolean in YAML 1.1 and a string for GitHub.
	On          map[string]any    `json:"true"`
	Permissions map[string]string `json:"permissions"`
	Concurrency string            `json:"concurrency"`
	Jobs        map[string]struct {
		RunsOn         string `json:"runs-on"`
		TimeoutMinutes int    `json:"timeout-minutes"`
		Steps          []struct {
			Name string            `json:"name"`
			If   string            `json:"if"`
			Uses string            `json:"uses"`
			Run  string            `json:"run"`
			Env  map[string]string `json:"env"`
			With map[string]string `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

// task has the fields of a Task of Tekton v1 that the recipe uses.
type task struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Description string `json:"description"`
		Params      []struct {
			Name, Type, Description, Default string
		} `json:"params"`
		Workspaces []struct{ Name, Description string } `json:"workspaces"`
		Results    []struct{ Name, Description string } `json:"results"`
		Steps      []struct {
			Name       string          `json:"name"`
			Image      string          `json:"image"`
			WorkingDir string          `json:"workingDir"`
			Env        []corev1.EnvVar `json:"env"`
			Script     string          `json:"script"`
		} `json:"steps"`
	} `json:"spec"`
}

// step has the fields of a step of the ci-operator registry that the recipe uses.
type step struct {
	Ref struct {
		As            string                      `json:"as"`
		From          string                      `json:"from"`
		Commands      string                      `json:"commands"`
		GracePeriod   string                      `json:"grace_period"`
		Timeout       string                      `json:"timeout"`
		Resources     corev1.ResourceRequirements `json:"resources"`
		Env           []struct{ Name, Default, Documentation string }
		Documentation string `json:"documentation"`
	} `json:"ref"`
}

// jobs has the fields of the Prow job configuration that the recipe uses.
type jobs struct {
	Periodics []struct {
		Name             string `json:"name"`
		Cron             string `json:"cron"`
		Decorate         bool   `json:"decorate"`
		DecorationConfig struct {
			Timeout     string `json:"timeout"`
			GracePeriod string `json:"grace_period"`
		} `json:"decoration_config"`
		Spec corev1.PodSpec `json:"spec"`
	} `json:"periodics"`
}

// scripts returns the scripts of the recipes, by CI system.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	var actions workflow
	parse(t, "GitHub Actions", &actions)
	var tekton task
	parse(t, "Tekton", &tekton)
	var ref step
	parse(t, "Prow", &ref)
	if want := ref.Ref.As + "-commands.sh"; ref.Ref.Commands != want {
		t.Errorf("the file of the step is %q, want %q", ref.Ref.Commands, want)
	}
	var prow jobs
	parse(t, "Prow periodic", &prow)
	groovy := regexp.MustCompile(`(?s)'''(.*?)'''`).FindStringSubmatch(block(t, "Jenkins", "groovy"))
	if len(groovy) != 2 || strings.Contains(groovy[1], `\`) {
		t.Fatal("the recipe for Jenkins has no script, or one with a backslash, which Groovy interprets")
	}
	return map[string]string{
		"Actions": actions.Jobs["preflight"].Steps[0].Run,
		"Tekton":  tekton.Spec.Steps[0].Script,
		"Jenkins": groovy[1],
		"Step":    block(t, "Prow", "sh"),
		"Prow":    prow.Periodics[0].Spec.Containers[0].Args[0],
	}
}

// TestRecipes runs each script as its CI system does, on a cluster with a closed gate, and
// then on one that can be updated.
func TestRecipes(t *testing.T) {
	pullSpec, err := testCluster.Push(t.Context(), zoo.To, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := testCluster.Offer(t, map[string]string{zoo.To: pullSpec})
	for _, state := range []struct {
		reason string
		gates  map[string]string
		code   int
	}{
		{"with a closed gate, the decision is Blocked", map[string]string{gate: "Read the recipes."}, exit.Blocked},
		{"without gates, the decision is Ready", map[string]string{}, exit.Ready},
	} {
		w.State.Gates = state.gates
		w.Apply(t)
		for name, script := range scripts(t) {
			dir := t.TempDir()
			result := zoo.Run(t, shell(t, dir, script))
			if result.Code != state.code {
				t.Errorf("%s: %s: exit code %d, want %d\n%s%s", name, state.reason, result.Code, state.code, result.Stdout, result.Stderr)
				continue
			}
			expectReports(t, name, dir, state.code)
		}
	}
}

// shell returns a command that runs a script in a directory, with the environment of the CI
// systems.
func shell(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	kubeconfig, err := os.ReadFile(local.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + filepath.Dir(testCluster.Program(t)) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir, "KUBECONFIG=" + local.Kubeconfig,
		"KUBECONFIG_DATA=" + string(kubeconfig), "RUNNER_TEMP=" + dir, "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"),
		"TO=", "VERDICT=" + filepath.Join(dir, "verdict.txt"),
		"ARTIFACTS=" + dir, "ARTIFACT_DIR=" + dir,
	}
	return command
}

// expectReports checks the reports of a recipe that ended with this exit code.
func expectReports(t *testing.T, name, dir string, code int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "junit_preflight.xml"))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	var suites struct {
		Failures int `xml:"failures,attr"`
		Suites   []struct {
			Cases []struct {
				Name string `xml:"name,attr"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil || len(suites.Suites) < 2 || (suites.Failures > 0) != (code != exit.Ready) {
		t.Errorf("%s: JUnit: %+v, %v; want test cases, with failures: %t", name, suites, err, code != exit.Ready)
	}
	html, err := os.ReadFile(filepath.Join(dir, "preflight.html"))
	if err != nil || !strings.HasPrefix(string(html), "<!doctype html>") {
		t.Errorf("%s: %v, the HTML begins with %.40q", name, err, html)
	}
	if summary, err := os.ReadFile(filepath.Join(dir, "summary.md")); name == "Actions" &&
		(err != nil || !strings.Contains(string(summary), zoo.To)) {
		t.Errorf("%s: the summary is %q, %v", name, summary, err)
	}
	if verdict, err := os.ReadFile(filepath.Join(dir, "verdict.txt")); name == "Tekton" &&
		(err != nil || !strings.Contains(string(verdict), zoo.To)) {
		t.Errorf("%s: the verdict is %q, %v", name, verdict, err)
	}
}
