// Package recipes_test answers: does the script of every recipe for a CI system run a
// preflight, end with the exit code of its decision, and leave its reports?
package recipes_test

import (
	"encoding/xml"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/documents"
	"github.com/openshift/update-preflight/test/zoo"
)

var (
	local *cluster.Cluster
	house *zoo.Zoo
)

func TestMain(m *testing.M) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	cluster.Main(m, func(c *cluster.Cluster) {
		c.Registry = strings.TrimPrefix(server.URL, "http://")
		local, house = c, zoo.At(c)
	}, cluster.ControlPlaneOnly())
}

const (
	root = "../.."
	page = "cmd/oc-preflight/CI.md"
	// gate is an admin gate that is closed, so that the decision is Blocked.
	gate = "ack-5.1-recipes"
)

// The exit codes of the program.
const (
	ready   = 0
	blocked = 3
)

// block is the text of the only block of a section in a language.
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

// parse reads YAML with known fields only.
func parse(t *testing.T, section string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(block(t, section, "yaml")), into); err != nil {
		t.Fatalf("%s: section %q: %v", page, section, err)
	}
}

// workflow is what the recipe uses of the format of GitHub Actions.
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

// task is what the recipe uses of a Task of Tekton v1.
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

// step is what the recipe uses of a step of the registry of ci-operator.
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

// jobs is what the recipe uses of the configuration of Prow.
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

// scripts are those of the recipes, by CI system.
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

// TestRecipes runs each script as its CI system does, on a cluster in which a gate is
// closed, and then in one that can be updated.
func TestRecipes(t *testing.T) {
	pullSpec, err := house.Push(t.Context(), zoo.To, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := house.Offer(t, map[string]string{zoo.To: pullSpec})
	for _, state := range []struct {
		reason string
		gates  map[string]string
		code   int
	}{
		{"a closed gate blocks", map[string]string{gate: "Read the recipes."}, blocked},
		{"without it the cluster can be updated", map[string]string{}, ready},
	} {
		w.State.Gates = state.gates
		w.Apply(t)
		for name, script := range scripts(t) {
			dir := t.TempDir()
			ended := zoo.End(t, shell(t, dir, script))
			if ended.Code != state.code {
				t.Errorf("%s: %s: exit code %d, want %d\n%s%s", name, state.reason, ended.Code, state.code, ended.Stdout, ended.Stderr)
				continue
			}
			expectReports(t, name, dir, state.code)
		}
	}
}

// shell is a script with the environment that the CI systems provide, in a directory.
func shell(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	kubeconfig, err := os.ReadFile(local.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "sh", "-e", "-c", script)
	command.Dir = dir
	command.Env = []string{
		"PATH=" + filepath.Dir(house.Program(t)) + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + dir, "KUBECONFIG=" + local.Kubeconfig,
		"KUBECONFIG_DATA=" + string(kubeconfig), "RUNNER_TEMP=" + dir, "GITHUB_STEP_SUMMARY=" + filepath.Join(dir, "summary.md"),
		"TO=", "VERDICT=" + filepath.Join(dir, "verdict.txt"),
		"ARTIFACTS=" + dir, "ARTIFACT_DIR=" + dir,
	}
	return command
}

// expectReports reads the reports of a recipe that ended with that exit code.
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
	if err := xml.Unmarshal(text, &suites); err != nil || len(suites.Suites) < 2 || (suites.Failures > 0) != (code != ready) {
		t.Errorf("%s: JUnit with test cases and failures (%t) is expected, got %+v, %v", name, code != ready, suites, err)
	}
	html, err := os.ReadFile(filepath.Join(dir, "preflight.html"))
	if err != nil || !strings.HasPrefix(string(html), "<!doctype html>") {
		t.Errorf("%s: %v, HTML begins with %.40q", name, err, html)
	}
	if summary, err := os.ReadFile(filepath.Join(dir, "summary.md")); name == "Actions" && (err != nil || !strings.Contains(string(summary), zoo.To)) {
		t.Errorf("%s: the summary is %q, %v", name, summary, err)
	}
	if verdict, err := os.ReadFile(filepath.Join(dir, "verdict.txt")); name == "Tekton" && (err != nil || !strings.Contains(string(verdict), zoo.To)) {
		t.Errorf("%s: the verdict is %q, %v", name, verdict, err)
	}
}
