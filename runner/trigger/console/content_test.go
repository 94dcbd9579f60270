package console_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	consolev1 "github.com/openshift/api/console/v1"
	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/runner/trigger/announcement"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/test/prometheus"
)

// The links are to the files that a release has: the archives of all platforms, and the checksums.
func TestDownloadsAreThoseOfARelease(t *testing.T) {
	content, err := os.ReadFile("../../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Name   string `json:"project_name"`
		Builds []struct {
			Targets []string `json:"targets"`
		} `json:"builds"`
		Archives []struct {
			Name      string   `json:"name_template"`
			Formats   []string `json:"formats"`
			Overrides []struct {
				OS      string   `json:"goos"`
				Formats []string `json:"formats"`
			} `json:"format_overrides"`
		} `json:"archives"`
		Checksum struct {
			Name string `json:"name_template"`
		} `json:"checksum"`
	}
	if err := yaml.Unmarshal(content, &config); err != nil {
		t.Fatal(err)
	}
	if len(config.Builds) != 1 || len(config.Archives) != 1 {
		t.Fatalf("there are other builds or archives: %+v", config)
	}
	archive := config.Archives[0]
	want := []string{config.Checksum.Name}
	for _, target := range config.Builds[0].Targets {
		system, architecture, _ := strings.Cut(target, "_")
		formats := archive.Formats
		for _, each := range archive.Overrides {
			if each.OS == system {
				formats = each.Formats
			}
		}
		var name strings.Builder
		values := map[string]string{"ProjectName": config.Name, "Os": system, "Arch": architecture}
		if err := template.Must(template.New("").Option("missingkey=error").Parse(archive.Name)).Execute(&name, values); err != nil {
			t.Fatal(err)
		}
		for _, format := range formats {
			want = append(want, name.String()+"."+format)
		}
	}
	c := newWorld(t, consoleURL)
	apply(t, newKeeper(t, c, downloads, "v1.0.0", &text{}))
	var found consolev1.ConsoleCLIDownload
	read(t.Context(), t, "ConsoleCLIDownload", &found)
	var got []string
	for _, each := range found.Spec.Links {
		got = append(got, path.Base(each.Href))
		if !strings.HasPrefix(each.Href, downloads+"v1.0.0/") || each.Text == "" {
			t.Errorf("the link is %+v", each)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files of a release (-want, +got):\n%s", diff)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, text string
		want         string
	}{
		"Host": {reason: "a mirror", text: "https://mirror.example.com", want: "https://mirror.example.com/a"},
		"Path": {
			reason: "the last slash is optional", text: "https://mirror.example.com:8443/x/",
			want: "https://mirror.example.com:8443/x/a",
		},
		"Dots":     {reason: "a path is normal", text: "https://mirror.example.com/x/../y", want: "https://mirror.example.com/y/a"},
		"HTTP":     {reason: "others could replace the programs", text: "http://mirror.example.com"},
		"Script":   {reason: "a browser would execute it", text: "javascript:alert(1)"},
		"Mail":     {reason: "it has no path", text: "mailto:a@example.com"},
		"Relative": {reason: "it has no host", text: "mirror.example.com/x"},
		"Port":     {reason: "it has no host", text: "https://:443/x"},
		"User":     {reason: "every user of the console would read the password", text: "https://a:b@mirror.example.com"},
		"Query":    {reason: "a path cannot be appended", text: "https://mirror.example.com/?a"},
		"Empty":    {reason: "a path cannot be appended", text: "https://mirror.example.com/#"},
		"Long":     {reason: "it is bounded", text: "https://mirror.example.com/" + strings.Repeat("x", 1000)},
		"Control":  {reason: "it is no URL", text: "https://mirror.example.com/\n"},
	} {
		parsed, err := console.Address(tc.text)
		if (err == nil) != (tc.want != "") || err == nil && parsed.JoinPath("a").String() != tc.want {
			t.Errorf("%s: %s: %v, %v; want %q", name, tc.reason, parsed, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "a:b@") {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
}

// board is what the console reads of a dashboard (openshift/console, monitoring/dashboards/types.ts).
type board struct {
	Title string `json:"title"`
	Rows  []struct {
		Title  string  `json:"title"`
		Panels []panel `json:"panels"`
	} `json:"rows"`
}

type panel struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Title     string `json:"title"`
	Span      int    `json:"span"`
	Transform string `json:"transform"`
	Targets   []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
	Styles    []map[string]any `json:"styles"`
	ValueMaps []struct {
		Op    string `json:"op"`
		Value string `json:"value"`
		Text  string `json:"text"`
	} `json:"valueMaps"`
}

// readBoard reads the dashboard in the cluster.
func readBoard(t *testing.T) board {
	t.Helper()
	apply(t, newKeeper(t, newWorld(t, consoleURL), "", "v1.0.0", &text{}))
	var found corev1.ConfigMap
	read(t.Context(), t, "ConfigMap", &found)
	var parsed board
	for name, content := range found.Data {
		if err := json.Unmarshal([]byte(content), &parsed); err != nil || !strings.HasSuffix(name, ".json") {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return parsed
}

// The dashboard shows all metrics of the controller, and no others.
func TestDashboardShowsTheMetrics(t *testing.T) {
	described := make(chan *client.Desc, 100)
	announcement.NewMetrics().Describe(described)
	close(described)
	var want []string
	for each := range described {
		want = append(want, regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(each.String())[1])
	}
	var got []string
	for _, row := range readBoard(t).Rows {
		for _, panel := range row.Panels {
			for _, target := range panel.Targets {
				got = append(got, regexp.MustCompile(`\w+_\w+`).FindAllString(strings.NewReplacer(`job="update-preflight"`, "").Replace(target.Expr),
					-1)...)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" || len(want) < 5 {
		t.Errorf("metrics (-exported, +shown):\n%s", diff)
	}
}

// Prometheus evaluates each expression over the metrics of two updates, and a panel shows what it is for.
func TestDashboardShowsValues(t *testing.T) {
	t.Cleanup(func() {
		if err := queried.Stop(); err != nil {
			t.Error(err)
		}
	})
	var rules []prometheus.Rule
	series := func(name, value string, labels ...string) {
		rule := prometheus.Rule{
			Record: "update_preflight_" + name, Expr: "vector(" + value + ")",
			Labels: map[string]string{"job": "update-preflight"},
		}
		for i := 0; i < len(labels); i += 2 {
			rule.Labels[labels[i]] = labels[i+1]
		}
		rules = append(rules, rule)
	}
	truth := map[bool]string{true: "1", false: "0"}
	series("up", "1", "pod", "leader")
	series("up", "0", "pod", "other")
	for target, decided := range map[string]string{"4.18.9": "Ready", "4.19.1": "Blocked"} {
		for _, decision := range []string{"Ready", "Blocked", "Undecided"} {
			series("verdict", truth[decision == decided], "target", target, "decision", decision, "guard", fmt.Sprint(target == "4.19.1"), "digest",
				"x")
		}
		series("completion_timestamp_seconds", fmt.Sprint(time.Now().Add(-90*time.Minute).Unix()), "target", target)
	}
	series("findings", "2", "target", "4.19.1", "outcome", "Fail", "blocks", "true")
	series("findings", "1", "target", "4.19.1", "outcome", "Unknown", "blocks", "true")
	series("findings", "7", "target", "4.19.1", "outcome", "Pass", "blocks", "false")
	series("after_update", "1", "target", "4.18.3", "decision", "Regressed")
	series("after_update", "0", "target", "4.18.3", "decision", "Good")
	series("verdict", "1", "target", "9.9.9", "decision", "Ready", "guard", "true", "job", "another")
	running := queried.Load(t, rules...)
	connected, err := api.NewClient(api.Config{Address: running.URL})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range readBoard(t).Rows {
		for _, panel := range row.Panels {
			for _, target := range panel.Targets {
				value, warnings, err := prometheusv1.NewAPI(connected).Query(t.Context(), target.Expr, time.Now())
				if err != nil || len(warnings) > 0 {
					t.Fatalf("%s: %v %v", target.Expr, err, warnings)
				}
				vector, _ := value.(model.Vector)
				var all []string
				for _, sample := range vector {
					all = append(all, strings.ReplaceAll(fmt.Sprintf("%s=%.1f", sample.Metric, sample.Value), `"`, ""))
				}
				slices.Sort(all)
				got = append(got, fmt.Sprint(panel.Type, " ", target.RefID, " ", strings.Join(all, " ")))
			}
		}
	}
	want := []string{
		"singlestat A {}=0.0", "singlestat A {}=1.0", "singlestat A {}=1.0",
		"table A {target=4.18.9}=1.0 {target=4.19.1}=0.0", "table B {target=4.18.9}=0.0 {target=4.19.1}=1.0",
		"table C {target=4.18.9}=0.0 {target=4.19.1}=0.0",
		"table D {target=4.19.1}=3.0", "table E {target=4.18.9}=1.5 {target=4.19.1}=1.5",
		"graph A {decision=Blocked, target=4.19.1}=1.0 {decision=Ready, target=4.18.9}=1.0",
		"graph A {outcome=Fail, target=4.19.1}=2.0 {outcome=Pass, target=4.19.1}=7.0 {outcome=Unknown, target=4.19.1}=1.0",
		"graph A {decision=Regressed, target=4.18.3}=1.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want, +got):\n%s", diff)
	}
}

// The console shows these panels only, by an ID of each; a column of a table is the value of one target, and its rows
// differ by the first label.
func TestDashboardIsOfTheConsole(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range readBoard(t).Rows {
		span := 0
		for _, panel := range row.Panels {
			if !slices.Contains([]string{"graph", "singlestat", "table"}, panel.Type) || panel.Title == "" || panel.ID == "" || seen[panel.ID] ||
				len(panel.Targets) == 0 {
				t.Errorf("the console does not show %+v", panel)
			}
			seen[panel.ID] = true
			span += panel.Span
			if panel.Type == "singlestat" && (len(panel.Targets) > 1 || len(panel.ValueMaps) != 3) {
				t.Errorf("a value has a text, also if there is none: %+v", panel)
			}
			if panel.Type != "table" {
				continue
			}
			if panel.Transform != "table" {
				t.Errorf("%s is no table", panel.Title)
			}
			for _, target := range panel.Targets {
				if !slices.ContainsFunc(panel.Styles, func(style map[string]any) bool {
					return style["pattern"] == "Value #"+target.RefID && style["alias"] != ""
				}) {
					t.Errorf("there is no column of %s", target.Expr)
				}
			}
		}
		if span != 12 {
			t.Errorf("the panels of %q have the width %d", row.Title, span)
		}
	}
}
