package remains

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func folder(t *testing.T, temporary, name string) string {
	t.Helper()
	dir := filepath.Join(temporary, name)
	if err := os.MkdirAll(filepath.Join(dir, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRemoveDead(t *testing.T) {
	temporary := t.TempDir()
	running, dead := folder(t, temporary, Prefix+"1"), folder(t, temporary, Prefix+"2")
	folder(t, temporary, "another-program")
	lock, err := Lock(running)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(running); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lock: %v, want %v", err, ErrInUse)
	}
	removed, err := RemoveDead(temporary)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{dead}, removed); diff != "" {
		t.Errorf("removed (-want +got):\n%s", diff)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err = RemoveDead(temporary); err != nil || len(removed) != 1 || removed[0] != running {
		t.Errorf("after the end of the other cluster: %v, %v", removed, err)
	}
	if _, err := os.Stat(filepath.Join(temporary, "another-program", "logs")); err != nil {
		t.Errorf("somebody else's folder: %v", err)
	}
}

func TestRemoveRefusesOtherFolders(t *testing.T) {
	dir := folder(t, t.TempDir(), "another-program")
	if err := Remove(dir); err == nil {
		t.Error("it was removed")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}
