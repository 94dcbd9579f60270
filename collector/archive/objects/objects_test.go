package objects_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/archive/objects"
)

func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, content string
		want            []string
		list            string
		err             string
	}{
		"Object": {reason: "one object", content: "---\napiVersion: v1\nkind: Pod\n", want: []string{`{"apiVersion":"v1","kind":"Pod"}`}},
		"List": {
			reason: "the printers' order of keys",
			content: "---\napiVersion: v1\nitems:\n- kind: Pod\n  metadata:\n    name: a\n\n- kind: Pod\n  data: |\n    items:\n    - " +
				"x\nkind: PodList\nmetadata: {}\n", want: []string{`{"kind":"Pod","metadata":{"name":"a"}}`, `{"data":"items:\n- x\n","kind":"Pod"}`},
			list: "PodList",
		},
		"Indented": {
			reason: "another printer indents items", content: "kind: List\nitems:\n  - kind: Pod\n    args:\n      - a\n",
			want: []string{`{"args":["a"],"kind":"Pod"}`}, list: "List",
		},
		"Empty": {reason: "a resource without objects", content: "apiVersion: v1\nitems: []\nkind: PodList\n", list: "PodList"},
		"JSON": {
			reason: "a list of JSON", content: ` {"kind":"List","items":[{"kind":"Pod"}]}`, want: []string{`{"kind":"Pod"}`},
			list: "List",
		},
		"JSONObject": {reason: "an object of JSON", content: `{"kind":"Pod"}`, want: []string{`{"kind":"Pod"}`}},
		"Asterisks": {
			reason: "text that looks like an alias", content: "kind: ConfigMap\ndata: |\n  *bold* &co\n  - *x\n",
			want: []string{`{"data":"*bold* \u0026co\n- *x\n","kind":"ConfigMap"}`},
		},
		"Alias":     {reason: "aliases expand without bound", content: "kind: &k Pod\nname: *k\n", err: "anchor or an alias"},
		"TornList":  {reason: "the kind follows the items", content: "apiVersion: v1\nitems:\n- kind: Pod\n", err: "ends before the kind"},
		"TornLine":  {reason: "a file ends with a line break", content: "apiVersion: v1\nkind: Po", err: "ends within a line"},
		"TornJSON":  {reason: "JSON says where it ends", content: `{"kind":"List","items":[{"kind"`, err: "unexpected end"},
		"Documents": {reason: "a file has one document", content: "kind: Pod\n---\nkind: Pod\n", err: "several documents"},
		"Nothing":   {reason: "a file without content", content: "\n", err: "empty"},
		"NoObject":  {reason: "a list without keys", content: "- a\n", err: "not an object"},
		"Duplicate": {reason: "two runs wrote one file", content: "kind: Pod\nkind: Pod\n", err: "kind"},
		"DuplicateItem": {
			reason: "an item has a key twice", content: "items:\n- kind: Pod\n  spec: {a: 1, a: 2}\nkind: List\n",
			err: `"a" already set`,
		},
		"DuplicateJSON": {
			reason: "encoding/json takes the last", content: `{"kind":"Pod","spec":{"a":[{"b":1,"c":2,"b":3}]}}`,
			err: `the key "b" twice`,
		},
		"DuplicateList": {
			reason: "the second list would hide the first", content: `{"kind":"List","items":[{"kind":"Pod"}],"items":[]}`,
			err: `the key "items" twice`,
		},
		"EscapedJSON": {
			reason: "an escape does not make another key", content: `{"kind":"Pod","\u006bind":"Node"}`,
			err: `the key "kind" twice`,
		},
		"JSONInYAML": {
			reason: "an item of a list is JSON", content: "items:\n- {\"kind\":\"Pod\",\"kind\":\"Node\"}\nkind: List\n",
			err: `the key "kind" twice`,
		},
		"SameKeys": {
			reason:  "two objects have one key each, and a value is no key",
			content: `{"kind":"Pod","a":{"kind":"kind"},"b":[{"kind":":"},{"kind":"\":"}]}`,
			want:    []string{`{"kind":"Pod","a":{"kind":"kind"},"b":[{"kind":":"},{"kind":"\":"}]}`},
		},
		"CaseList": {
			reason:  "encoding/json ignores case, so that the second list would hide the first",
			content: `{"kind":"List","items":[{"kind":"Pod"}],"Items":[]}`, err: `the keys "items" and "Items"`,
		},
		"CaseFold": {
			reason: "it takes other characters for letters, too", content: `{"Kind":"Node","kind":"Pod"}`,
			err: `and "kind" in one object`,
		},
		"CaseItem": {
			reason: "an item of a list has two kinds", content: `{"kind":"List","items":[{"kind":"Pod","Kind":"Node"}]}`,
			err: `the keys "kind" and "Kind"`,
		},
		"CaseName": {
			reason: "an object has two names", content: "kind: Pod\nmetadata:\n  name: a\n  Name: b\n",
			err: `the keys "Name" and "name"`,
		},
		"CaseYAML": {reason: "a list of YAML has two", content: "Items:\n- kind: Pod\nitems: []\nkind: List\n", err: "several lists"},
		"CaseData": {
			reason:  "the keys of a map are case-sensitive",
			content: `{"kind":"ConfigMap","metadata":{"labels":{"a":"","A":""}},"data":{"a":"","A":""}}`,
			want:    []string{`{"kind":"ConfigMap","metadata":{"labels":{"a":"","A":""}},"data":{"a":"","A":""}}`},
		},
		"UTF16":   {reason: "PowerShell redirects so", content: "\xff\xfek\x00i\x00n\x00d\x00", err: "it is UTF-16; convert it to UTF-8"},
		"UTF16BE": {reason: "in the other byte order", content: "\xfe\xff\x00k", err: "it is UTF-16; convert it to UTF-8"},
		"Mark":    {reason: "a mark of UTF-8 is no content", content: "\xef\xbb\xbfkind: Pod\n", want: []string{`{"kind":"Pod"}`}},
		"LongLine": {
			reason: "a line is longer than a buffer", content: "kind: " + strings.Repeat("a", 200_000) + "\n",
			want: []string{`{"kind":"` + strings.Repeat("a", 200_000) + `"}`},
		},
		"LongItem": {reason: "so is the first line of an item", content: "items:\n- kind: " + strings.Repeat("a", 200_000) +
			"\nkind: List\n", want: []string{`{"kind":"` + strings.Repeat("a", 200_000) + `"}`}, list: "List"},
		"ManyElements": {
			reason:  "their parser takes up to a kilobyte for each",
			content: "kind: Pod\nspec:\n" + strings.Repeat("- {a: 1}\n", 120_000), err: "more than 200000 lines and elements",
		},
		"LargeValue": {
			reason: "one long value takes no more", content: "kind: Pod\nspec: " + strings.Repeat("a", 2<<20) + "\n",
			want: []string{`{"kind":"Pod","spec":"` + strings.Repeat("a", 2<<20) + `"}`},
		},
		"LargeObject": {reason: "an object is bounded", content: "kind: " + strings.Repeat("a", 17<<20) + "\n", err: "larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			list, err := objects.Read(strings.NewReader(tc.content), func(object []byte) error {
				got = append(got, string(object))
				return nil
			})
			if (err == nil) != (tc.err == "") || (err != nil && !strings.Contains(err.Error(), tc.err)) {
				t.Fatalf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, got); err == nil && (diff != "" || list.Kind != tc.list) {
				t.Errorf("%s: kind %q, want %q; -want, +got:\n%s", tc.reason, list.Kind, tc.list, diff)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nitems:\n- kind: Pod\n  metadata:\n    name: a\nkind: PodList\n", "kind: &k Pod\nname: *k\n",
		`{"kind":"List","items":[{}]}`,
		"---\nkind: Pod\n", "items:\n  - a: |\n      - b\n  -\nkind: List\n", "a: [&x [*x]]\n",
		"\xff\xfek\x00", "\xef\xbb\xbf{}", `{"a":{"b":1,"b":2}}`, "items:\n- {\"a\":1,\"a\":2}\nkind: List\n",
		"apiVersion: v1\nitems:\n- kind: Po",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		_, err := objects.Read(bytes.NewReader(content), func(object []byte) error {
			if !json.Valid(object) {
				t.Errorf("%q is not JSON", object)
			}
			return nil
		})
		if err != nil && err.Error() == "" {
			t.Error("an error says what is wrong")
		}
	})
}
