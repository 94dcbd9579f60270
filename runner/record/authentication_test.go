package record_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
)

// Each field of an intent states whether runs that differ in it may have other results.
func TestEachFieldOfAnIntentIsCompared(t *testing.T) {
	compared := record.Compared()
	values := map[reflect.Type]any{
		reflect.TypeFor[update.Release]():   update.Release{Version: "4.19.1"},
		reflect.TypeFor[[]byte]():           []byte("other"),
		reflect.TypeFor[[]string]():         []string{"other"},
		reflect.TypeFor[bool]():             true,
		reflect.TypeFor[int64]():            int64(1),
		reflect.TypeFor[string]():           "other",
		reflect.TypeFor[record.Requester](): record.Ahead,
	}
	intent := reflect.TypeFor[record.Intent]()
	for i := range intent.NumField() {
		field := intent.Field(i)
		want, declared := compared[field.Name]
		if !declared {
			t.Errorf("%s is not declared in package record", field.Name)
			continue
		}
		var other record.Intent
		reflect.ValueOf(&other).Elem().Field(i).Set(reflect.ValueOf(values[field.Type]))
		if difference := (record.Intent{}).Difference(other); (difference != "") != want {
			t.Errorf("%s: %q, want a difference: %t", field.Name, difference, want)
		}
	}
	if len(compared) != intent.NumField() {
		t.Errorf("%d fields are declared, and %d exist", len(compared), intent.NumField())
	}
}

func TestDifference(t *testing.T) {
	made := record.Intent{From: "4.18.3", Target: update.Release{Version: "4.19.1", Image: "a/release@sha256:1"}, ToolVersion: "v1"}
	mirrored := made
	mirrored.Target.Image = "b/release@sha256:1"
	if difference := made.Difference(mirrored); difference != "" {
		t.Errorf("the release is the same, from another mirror: %q", difference)
	}
	later := made
	later.From = "4.18.9"
	if difference := made.Difference(later); !strings.Contains(difference, "4.18.3") || !strings.Contains(difference, "4.18.9") {
		t.Errorf("%q does not name both releases of the cluster", difference)
	}
}
