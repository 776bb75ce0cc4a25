package sshtest

// What the daemon is told, and what its user's shells say unasked.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// noise is what a rented image's rc files do to those who only want an exec.
var noise = map[string]string{
	".bashrc":                  "echo 'bash noise on stdout'\necho 'bash noise on stderr' >&2\n",
	".profile":                 "echo 'profile noise'\n[ -z \"$BASH_VERSION\" ] || . ~/.bashrc\n",
	".cshrc":                   "echo 'csh noise on stdout'\n",
	".config/fish/config.fish": "echo 'fish noise on stdout'\necho 'fish noise on stderr' >&2\n",
}

// arguments is the command line that starts the daemon in the foreground.
func (s *Server) arguments() ([]string, error) {
	args, err := s.sshdArguments, error(nil)
	if s.o.Dropbear {
		args = s.dropbearArguments
	}
	line, err := args()
	if err != nil || len(s.o.Hide) == 0 && s.o.SmallHome == "" {
		return line, err
	}
	// A mount namespace of its own: what is hidden is hidden from this server only.
	script := ""
	for _, name := range s.o.Hide {
		for _, dir := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/usr/lib", "/usr/lib/openssh"} {
			file := filepath.Join(dir, name)
			script += fmt.Sprintf("[ ! -e %s ] || mount --bind /dev/null %s\n", file, file)
		}
	}
	if size := s.o.SmallHome; size != "" {
		script += fmt.Sprintf("mkdir -p %s\nmount -t tmpfs -o size=%s,mode=755,uid=%d,gid=%d sshtest %s\ncp -a %s/skeleton/. %s/\n",
			s.Home, size, s.user.uid, s.user.gid, s.Home, s.Dir, s.Home)
	}
	return append([]string{"unshare", "-m", "sh", "-ec", script + `exec "$@"`, "sh"}, line...), nil
}

func (s *Server) sshdArguments() ([]string, error) {
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // where sshd locks itself up
		return nil, err
	}
	lines := []string{
		"HostKey " + filepath.Join(s.Dir, "host_key"),
		"AuthorizedKeysFile " + filepath.Join(s.Dir, "authorized_keys"),
		"PidFile none", "UsePAM no", "UseDNS no", "StrictModes no", "PrintMotd no", "LogLevel VERBOSE",
		"PermitTTY yes", "AllowTcpForwarding yes", "X11Forwarding no",
	}
	yesNo := map[bool]string{true: "yes", false: "no"}
	lines = append(lines, "PasswordAuthentication "+yesNo[s.o.Password != ""], "KbdInteractiveAuthentication no")
	switch {
	case s.o.NoSFTP:
	case s.o.InternalSFTP:
		lines = append(lines, "Subsystem sftp internal-sftp")
	default:
		lines = append(lines, "Subsystem sftp "+sftpServer())
	}
	if s.o.MaxSessions != 0 {
		lines = append(lines, fmt.Sprint("MaxSessions ", s.o.MaxSessions))
	}
	if s.o.MaxAuthTries != 0 {
		lines = append(lines, fmt.Sprint("MaxAuthTries ", s.o.MaxAuthTries))
	}
	if s.o.MaxStartups != "" {
		lines = append(lines, "MaxStartups "+s.o.MaxStartups)
	}
	if s.o.Banner != "" {
		file := filepath.Join(s.Dir, "banner")
		if err := os.WriteFile(file, []byte(s.o.Banner), 0o644); err != nil {
			return nil, err
		}
		lines = append(lines, "Banner "+file)
	}
	// The first value of a keyword wins, so a test's own lines go first.
	lines = append(append([]string{}, s.o.Extra...), lines...)
	config := filepath.Join(s.Dir, "sshd_config")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	sshd, err := exec.LookPath("sshd") // sshd wants an absolute path: it executes itself again
	if err != nil {
		return nil, err
	}
	return []string{sshd, "-D", "-e", "-f", config, "-o", "ListenAddress=" + s.Addr}, nil
}

func (s *Server) dropbearArguments() ([]string, error) {
	args := []string{"dropbear", "-F", "-E", "-m", "-p", s.Addr,
		"-r", filepath.Join(s.Dir, "host_key.dropbear"), "-P", filepath.Join(s.Dir, "dropbear.pid")}
	if s.o.Password == "" {
		args = append(args, "-s")
	}
	if s.o.MaxAuthTries != 0 {
		args = append(args, "-T", fmt.Sprint(s.o.MaxAuthTries))
	}
	if s.o.Banner != "" {
		file := filepath.Join(s.Dir, "banner")
		if err := os.WriteFile(file, []byte(s.o.Banner), 0o644); err != nil {
			return nil, err
		}
		args = append(args, "-b", file)
	}
	return append(args, s.o.Extra...), nil
}

func sftpServer() string {
	for _, file := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server"} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return "internal-sftp"
}
