package site_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/runner/site"
)

func archived(t *testing.T, sources ...site.Source) []byte {
	t.Helper()
	archive, err := site.Archive(sources)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func TestRestore(t *testing.T) {
	image, err := site.Image(pullSpec)
	if err != nil {
		t.Fatal(err)
	}
	directory, other := directoryOf(t, map[string]string{"a.yaml": "a"}), directoryOf(t, map[string]string{"a.yaml": "b"})
	sources := site.Canonical([]site.Source{directory, image, other})
	got, err := site.Restore(site.IDs(sources), archived(t, sources...))
	if diff := cmp.Diff(sources, site.Canonical(got)); diff != "" || err != nil {
		t.Errorf("want the sources with which the run began: %v\n%s", err, diff)
	}
	if archive := archived(t, image); archive != nil {
		t.Errorf("an image is read again by its digest, and not recorded: %d bytes", len(archive))
	}
	for name, tc := range map[string]struct {
		reason  string
		ids     []string
		archive []byte
	}{
		"Missing":  {reason: "the directory is not recorded", ids: []string{directory.ID()}},
		"Other":    {reason: "the recorded directory has other content", ids: []string{directory.ID()}, archive: archived(t, other)},
		"Broken":   {reason: "the archive cannot be decompressed", ids: []string{directory.ID()}, archive: []byte("x")},
		"Tag":      {reason: "a tag is no ID", ids: []string{"registry.example.com/checks:v1"}},
		"TooLarge": {reason: "the archive is bounded", ids: []string{directory.ID()}, archive: make([]byte, site.MaxArchive+1)},
		"TooMany":  {reason: "so are the sources", ids: make([]string, 17)},
	} {
		if got, err := site.Restore(tc.ids, tc.archive); err == nil {
			t.Errorf("%s (%s): %+v, want an error", name, tc.reason, got)
		}
	}
}

func TestValidate(t *testing.T) {
	image, err := site.Image(pullSpec)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, site.MaxArchive+1000)
	source := rand.NewChaCha8([32]byte{})
	if _, err := source.Read(random); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason  string
		sources []site.Source
		want    string
	}{
		"Image":   {reason: "one image", sources: []site.Source{image}},
		"TooMany": {reason: "the sources are counted", sources: make([]site.Source, 17), want: "more than 16"},
		"Tag": {
			reason: "a caller of the library may pass any text", sources: []site.Source{{Name: "registry.example.com/checks:v1"}},
			want: "not a pull spec by digest",
		},
		"Empty": {
			reason: "a directory without files", sources: []site.Source{{Name: "x", Files: map[string][]byte{}}},
			want: "no file is a manifest",
		},
		"Incompressible": {
			reason: "the record has a limit", sources: []site.Source{{Name: "x", Files: map[string][]byte{"a.yaml": random}}},
			want: "the limit is 65536",
		},
		"TooLarge": {
			reason:  "the limit of a file applies here, too",
			sources: []site.Source{{Name: "x", Files: map[string][]byte{"a.yaml": make([]byte, 1<<20+1)}}}, want: `"a.yaml" has more than`,
		},
	} {
		err := site.Validate(tc.sources)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s (%s): %v, want %q", name, tc.reason, err, tc.want)
		}
	}
}

// FuzzRestore parses archives of records, which have a MAC but may be of another version.
func FuzzRestore(f *testing.F) {
	archive, err := site.Archive([]site.Source{{Name: "x", Files: map[string][]byte{"a.yaml": []byte("a")}}})
	if err != nil {
		f.Fatal(err)
	}
	id := site.Source{Name: "x", Files: map[string][]byte{"a.yaml": []byte("a")}}.ID()
	f.Add(archive, id)
	f.Add([]byte("{}"), pullSpec)
	f.Fuzz(func(t *testing.T, archive []byte, id string) {
		sources, err := site.Restore([]string{id}, archive)
		if err == nil && (len(sources) != 1 || sources[0].ID() != id) {
			t.Errorf("%q is restored as %+v", id, sources)
		}
	})
}
