package weight_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"google.golang.org/protobuf/encoding/protowire"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/openshift/update-preflight/collector/cluster/weight"
)

func inJSON(text string) int64 { return (&weight.JSON{}).Add([]byte(text)) }

func inProtobuf(t *testing.T, object kruntime.Object) []byte {
	t.Helper()
	encoded, err := kruntime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), object)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// stated is an object in protobuf that states a kind.
func stated(t *testing.T, apiVersion, kind string, content []byte) []byte {
	t.Helper()
	encoded, err := (&kruntime.Unknown{TypeMeta: kruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: content}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(weight.Prefix), encoded...)
}

// slicesOf calls do for each slice of structs in a type, with the path to it in the Go struct and in JSON.
func slicesOf(of reflect.Type, index []int, path []string, do func(index []int, path []string, elem reflect.Type)) {
	for i := range of.NumField() {
		field := of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		below, to := append(slices.Clone(index), i), path
		if name != "" {
			to = append(slices.Clone(path), name)
		}
		switch {
		case !field.IsExported() || name == "-":
		case field.Type.Kind() == reflect.Slice && field.Type.Elem().Kind() == reflect.Struct:
			do(below, to, field.Type.Elem())
		case field.Type.Kind() == reflect.Struct:
			slicesOf(field.Type, below, to, do)
		}
	}
}

// TestElements has arrays of elements without content, of every type that is decoded: of each, what is decoded is
// smaller than the weight.
func TestElements(t *testing.T) {
	const count = 100
	tried := 0
	for kind, of := range scheme.Scheme.AllKnownTypes() {
		slicesOf(of, nil, nil, func(index []int, path []string, elem reflect.Type) {
			if kind.Version == kruntime.APIVersionInternal || len(path) == 0 {
				return
			}
			tried++
			least := count * int64(elem.Size()) * 9 / 4
			text := `{"` + strings.Join(path, `":{"`) + `":[{}` + strings.Repeat(",{}", count-1) + "]" + strings.Repeat("}", len(path))
			nulls := strings.ReplaceAll(text, ",{}", ",null")
			for _, text := range []string{text, nulls} {
				if got := inJSON(text); got < least {
					t.Errorf("%s %v in JSON weighs %d, and occupies %d", kind, path, got, least)
				}
			}
			object := reflect.New(of)
			object.Elem().FieldByIndex(index).Set(reflect.MakeSlice(reflect.SliceOf(elem), count, count))
			made, ok := reflect.TypeAssert[kruntime.Object](object)
			if _, encodes := reflect.TypeAssert[interface{ Marshal() ([]byte, error) }](object); !ok || !encodes {
				return
			}
			made.GetObjectKind().SetGroupVersionKind(kind)
			if got := weight.Protobuf(inProtobuf(t, made)); got < least {
				t.Errorf("%s %v in protobuf weighs %d, and occupies %d", kind, path, got, least)
			}
		})
	}
	if tried < 500 {
		t.Errorf("%d slices, want those of all kinds", tried)
	}
}

// TestOccupied compares the weight of lists that servers send with the memory of what is decoded.
func TestOccupied(t *testing.T) {
	container := corev1.Container{Name: "container", Image: "quay.io/example/image@sha256:0123456789", Args: []string{"--a", "--b"}}
	for i := range 20 {
		container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("VARIABLE_%d", i), Value: "value of the variable"})
	}
	pod := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Namespace: "namespace", Labels: map[string]string{"app": "a"}, UID: "6ba7b810-9dad-41d1-80b4"},
		Spec:       corev1.PodSpec{Containers: slices.Repeat([]corev1.Container{container}, 3), NodeName: "worker"},
	}
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: slices.Repeat([]corev1.Pod{pod}, 500)}
	encoded := inProtobuf(t, pods)
	operator := `{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Available","status":"True","reason":"AsExpected","message":"all is well"},{"type":"Degraded"}]}}`
	for name, tc := range map[string]struct {
		reason string
		weight int64
		decode func() any
		// most is the weight of each byte that is made; more keeps real clusters waiting.
		most int64
	}{
		"Pods": {reason: "what clusters have most", most: 12, weight: weight.Protobuf(encoded), decode: func() any {
			made, _, err := scheme.Codecs.UniversalDeserializer().Decode(encoded, nil, nil)
			if err != nil {
				t.Error(err)
			}
			return made
		}},
		"Operators": {
			reason: "JSON as a type", most: 16, weight: inJSON(`{"items":[` + strings.Repeat(operator+",", 499) + operator + `]}`),
			decode: func() any {
				made := &configv1.ClusterOperatorList{}
				if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"items":[`+strings.Repeat(operator+",", 499)+operator+`]}`),
					made); err != nil {
					t.Error(err)
				}
				return made
			},
		},
		"Dynamic": {
			reason: "JSON as maps", most: 8, weight: inJSON(`{"items":[` + strings.Repeat(operator+",", 499) + operator + `]}`),
			decode: func() any {
				var made any
				if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(`{"items":[`+strings.Repeat(operator+",", 499)+operator+`]}`),
					&made); err != nil {
					t.Error(err)
				}
				return made
			},
		},
		"Maps": {
			reason: "maps without content", most: 100, weight: inJSON(`{` + strings.Repeat(`"a":{"b":{}},`, 2000) + `"c":{}}`),
			decode: func() any { return nil },
		},
		"Members": {reason: "members of one map", most: 8, weight: inJSON(members(20_000)), decode: func() any {
			var made any
			if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(members(20_000)), &made); err != nil {
				t.Error(err)
			}
			return made
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			tc.decode() // what is derived once
			runtime.GC()
			runtime.ReadMemStats(&before)
			made := tc.decode()
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(made)
			got := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			if tc.weight < got || made != nil && tc.weight > tc.most*got {
				t.Errorf("%s: it weighs %d, and occupies %d", tc.reason, tc.weight, got)
			}
		})
	}
}

func members(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, `"k%d":1,`, i)
	}
	return `{` + text.String() + `"z":1}`
}

// TestForms has what servers send to weigh little.
func TestForms(t *testing.T) {
	const count = 10_000
	items := strings.Repeat("\x12\x00", count) // field 2, without content
	nested := []byte{}
	for range weight.MaxLevels + 2 {
		nested = field(2, nested)
	}
	causes := field(5, []byte(strings.Repeat("\x22\x00", count)))
	event := field(2, field(1, stated(t, "v1", "PodList", []byte(items))))
	for name, tc := range map[string]struct {
		reason string
		got    int64
		least  int64
	}{
		"Pods": {reason: "the kind is known", got: weight.Protobuf(stated(t, "v1", "PodList", []byte(items))), least: count * 1240},
		"Unknown": {
			reason: "a kind that is not known is as large as any",
			got:    weight.Protobuf(stated(t, "example.com/v1", "ThingList", []byte(items))), least: count * 1240,
		},
		"NoKind": {reason: "the caller's kind", got: weight.Protobuf(stated(t, "", "", []byte(items))), least: count * 1240},
		"Status": {reason: "another kind than requested", got: weight.Protobuf(stated(t, "v1", "Status", causes)), least: count * 48},
		"Metadata": {
			reason: "metadata alone", got: weight.Protobuf(stated(t, "meta.k8s.io/v1", "PartialObjectMetadataList", []byte(items))),
			least: count * 248,
		},
		"Levels": {reason: "messages in messages end the stack", got: weight.Protobuf(stated(t, "", "", nested)), least: weight.TooMuch},
		"Event": {
			reason: "an event of a watch has an object within", got: weight.Protobuf(stated(t, "v1", "WatchEvent", event)),
			least: count * 1240,
		},
		"Arrays": {reason: "arrays in arrays", got: inJSON(strings.Repeat("[", weight.MaxLevels+1)), least: weight.TooMuch},
		"Texts": {
			reason: "what looks like elements in a text is none",
			got:    -inJSON(`{"items":[{"message":"` + strings.Repeat(`[{},\"{},`, 1000) + `"}]}`), least: -60_000,
		},
		"Several":    {reason: "the heaviest of texts one after another", got: inJSON(`{}{"items":[{},{}]}{}`), least: 2 * 1240},
		"Parts":      {reason: "a text in parts", got: parts(`{"items":[{"a":"\"{"},{}]}`), least: 2 * 1240},
		"NoProtobuf": {reason: "nothing decodes it", got: weight.Protobuf([]byte(weight.Prefix + "\xff\xff")), least: 1},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got < tc.least {
				t.Errorf("%s: got %d, want at least %d", tc.reason, tc.got, tc.least)
			}
		})
	}
}

// field is a message with one field, which has a message or a text.
func field(number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
}

func parts(text string) (heaviest int64) {
	of := &weight.JSON{}
	for i := range len(text) {
		heaviest = max(heaviest, of.Add([]byte(text[i:i+1])))
	}
	return heaviest
}

func FuzzProtobuf(f *testing.F) {
	f.Add([]byte(weight.Prefix + "\x0a\x0d\x0a\x02v1\x12\x07PodList\x12\x02\x12\x00"))
	f.Fuzz(func(t *testing.T, object []byte) {
		if got := weight.Protobuf(append([]byte(weight.Prefix), object...)); got < int64(len(object)) {
			t.Errorf("%q weighs %d", object, got)
		}
		if got := inJSON(string(object)); got < 0 {
			t.Errorf("%q weighs %d", object, got)
		}
	})
}
