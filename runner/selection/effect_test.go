package selection_test

import (
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openshift/update-preflight/collector/acceptance"
	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/hypershift"
	"github.com/openshift/update-preflight/collector/updateplan/graphsource"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/site"
)

// module is the prefix of the packages whose structs have options.
const module = "github.com/openshift/update-preflight/"

// opaque are values of types that the test does not make itself.
func opaque(t *testing.T) map[reflect.Type]any {
	t.Helper()
	fixed, err := removedapi.ParseFixTime("3h")
	if err != nil {
		t.Fatal(err)
	}
	side := &hosted.ControlPlane{Cluster: &hypershift.HostedCluster{}}
	side.Cluster.Namespace, side.Cluster.Name = "clusters", "example"
	values := map[reflect.Type]any{}
	for _, value := range []any{
		fixed, side.Estate(), image.Manifests + "-blobs", http.DefaultTransport, slog.New(slog.DiscardHandler),
		[]site.Source{{Name: "checks", Files: map[string][]byte{"job.yaml": []byte("kind: Job")}}},
		acceptance.Named("--accept", "Risk"),
	} {
		values[reflect.TypeOf(value)] = value
	}
	return values
}

// vary sets another value than the zero one; false for a value that it cannot make.
func vary(field reflect.Value, known map[reflect.Type]any) bool {
	if value, ok := known[field.Type()]; ok {
		field.Set(reflect.ValueOf(value))
		return true
	}
	switch field.Kind() { //nolint:exhaustive // others are not made
	case reflect.Bool:
		field.SetBool(true)
	case reflect.String:
		field.SetString("other")
	case reflect.Int, reflect.Int64:
		field.SetInt(int64(time.Hour))
	case reflect.Slice:
		if field.Type().Elem().Kind() != reflect.String {
			return false
		}
		field.Set(reflect.ValueOf([]string{"other"}))
	default:
		return false
	}
	return true
}

// leaves calls visit for the options in a struct, by their path.
func leaves(options reflect.Value, path string, known map[reflect.Type]any, visit func(string, reflect.Value)) {
	for i := range options.NumField() {
		field, name := options.Field(i), path+options.Type().Field(i).Name
		_, isKnown := known[field.Type()]
		if field.Kind() == reflect.Struct && strings.HasPrefix(field.Type().PkgPath()+"/", module) && !isKnown {
			leaves(field, name+".", known, visit)
			continue
		}
		visit(name, field)
	}
}

// A result is used for the options that it was made with: each option states whether it changes the
// answer, and those that do are in what a run covers.
func TestEachOptionHasAnEffect(t *testing.T) {
	effects, known := runner.Effects(), opaque(t)
	var options runner.Options
	plain := options.Coverage()
	var seen []string
	leaves(reflect.ValueOf(&options).Elem(), "", known, func(path string, field reflect.Value) {
		seen = append(seen, path)
		effect, declared := effects[path]
		if !declared {
			t.Errorf("the option %s has no effect: declare it in package runner", path)
			return
		}
		if !vary(field, known) {
			return // a field of Origin identifies it, or it is no part of the answer
		}
		isPart := options.Coverage() != plain
		field.SetZero()
		if isPart != (effect == runner.OnAnswer) {
			t.Errorf("the option %s has an effect on the %s; part of what a run covers: %t", path, effect, isPart)
		}
	})
	for path := range effects {
		if !slices.Contains(seen, path) {
			t.Errorf("the option %s does not exist", path)
		}
	}
}

// Where the risks of a later update of a path come from is what its run covers.
func TestEachFieldOfAGraphHasAnEffect(t *testing.T) {
	known := map[reflect.Type]any{reflect.TypeFor[[]graphsource.File](): []graphsource.File{{Name: "stable-4.18", Content: []byte("{}")}}}
	effects := map[string]bool{"Channels": true, "Files": true, "Services": true, "Architecture": true, "Graphs": false, "Offline": false}
	var source graphsource.Request
	leaves(reflect.ValueOf(&source).Elem(), "", known, func(path string, field reflect.Value) {
		want, declared := effects[path]
		varied := vary(field, known)
		if got := runner.GraphIdentity(source) != ""; !declared || varied && got != want {
			t.Errorf("%s: declared %t, part of the identity %t, want %t", path, declared, got, want)
		}
		field.SetZero()
	})
	with := func(content string) string {
		return runner.GraphIdentity(graphsource.Request{Files: []graphsource.File{{Name: "graph.json", Content: []byte(content)}}})
	}
	if with("{}") == with("[]") {
		t.Error("the content of the file differs")
	}
}

func TestIdentity(t *testing.T) {
	if runner.Identity() != "" {
		t.Error("no value has an identity")
	}
	if runner.Identity("a", "b") != runner.Identity("b", "a", "a") {
		t.Error("the order of the values counts")
	}
	if runner.Identity("a", "b") == runner.Identity("a") || runner.Identity("a\nb") == runner.Identity("a", "b") {
		t.Error("other values have the same identity")
	}
	if strings.Contains(runner.Identity("https://user:secret@example.com"), "secret") {
		t.Error("the identity states the value")
	}
}
