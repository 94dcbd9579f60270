package lease_test

import (
	"bytes"
	"strings"
	"testing"
)

// The attachment is kept until the end of the run, also by another holder. It is bounded,
// since a header has other data.
func TestAttachment(t *testing.T) {
	t.Parallel()
	store := newRuns(api)
	intent := newIntent()
	intent.Attachment = bytes.Repeat([]byte{0, 255}, 32<<10)
	held := begin(t, store, intent)
	if err := held.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := begin(t, newRuns(api), intent)
	if got := again.Record(); !again.Resumed() || !bytes.Equal(got.Attachment, intent.Attachment) {
		t.Errorf("resumed %t with an attachment of %d bytes, want %d", again.Resumed(), len(got.Attachment), len(intent.Attachment))
	}
	finish(t, again)
	got, err := store.Get(t.Context(), held.Record().ID)
	if err != nil || !bytes.Equal(got.Attachment, intent.Attachment) {
		t.Errorf("an attachment of %d bytes, error %v; want %d", len(got.Attachment), err, len(intent.Attachment))
	}
	if err := got.Verified(); err != nil {
		t.Errorf("the MAC covers it: %v", err)
	}

	large := newIntent()
	large.Attachment = make([]byte, 64<<10+1)
	if _, err := store.Begin(t.Context(), large, "test"); err == nil || !strings.Contains(err.Error(), "attachment") {
		t.Errorf("want an error for an attachment that is too large, got %v", err)
	}
}
