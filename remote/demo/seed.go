//go:build unix

package demo

// What lies on the instances: small files with the shape of real work.

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"rentop/remote"
)

// folder writes an instance's home; the first error stays.
type folder struct {
	ctx  context.Context
	home string
	env  []string
	now  time.Time
	err  error
}

// file writes one file that was last changed so long ago.
func (f *folder) file(path, text string, ago time.Duration) {
	if f.err != nil {
		return
	}
	full := filepath.Join(f.home, filepath.FromSlash(path))
	if f.err = os.MkdirAll(filepath.Dir(full), 0o755); f.err != nil {
		return
	}
	if f.err = os.WriteFile(full, []byte(text), 0o644); f.err != nil {
		return
	}
	at := f.now.Add(-ago)
	f.err = os.Chtimes(full, at, at)
}

// weights is a stand-in for a binary file of kib KiB; equal seeds give equal bytes.
func weights(kib int, seed uint64) string {
	b := make([]byte, kib<<10)
	x := seed*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return string(b)
}

// git runs git in a folder of the home; without git on this machine there is no
// tree, which the demo can live with.
func (f *folder) git(dir string, args ...string) {
	if f.err != nil {
		return
	}
	path, err := exec.LookPath("git")
	if err != nil {
		return
	}
	cmd := exec.CommandContext(f.ctx, path, args...)
	cmd.Dir, cmd.Env = filepath.Join(f.home, dir), f.env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		f.err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
}

// rc writes the login's start-up files. A login shell's own (/etc/profile) forget
// our PATH, so they give it back.
func (f *folder) rc(name, bin string) {
	f.file(".bashrc", "PS1='root@"+name+":\\w\\$ '\nHISTFILE=\n", 24*time.Hour)
	f.file(".profile", "PATH="+remote.Quote(bin)+":$PATH\nexport PATH\n[ -n \"$BASH_VERSION\" ] && [ -f ~/.bashrc ] && . ~/.bashrc\n", 24*time.Hour)
}

const gitConfig = "[user]\n\tname = Demo\n\temail = demo@example.invalid\n[init]\n\tdefaultBranch = main\n[commit]\n\tgpgsign = false\n"

func seedTune(f *folder) {
	f.file("project/README.md", "# LoRA on 7B\n\nTrains adapters on the instruction set; checkpoints go to ~/ckpt.\n", 4*time.Hour)
	f.file("project/config.yaml", "model: llama-7b\nlora: {rank: 16, alpha: 32}\nbatch: 8\nctx: 4096\nlr: 3.0e-4\n", 4*time.Hour)
	f.file("project/requirements.txt", "torch==2.5.1\ntransformers==4.47.0\npeft==0.14.0\n", 4*time.Hour)
	for i := range 4 {
		f.file(fmt.Sprintf("project/data/shard-%02d.jsonl", i), strings.Repeat(`{"prompt":"…","answer":"…"}`+"\n", 400), 4*time.Hour)
	}
	for i := 1; i <= 5; i++ {
		f.file(fmt.Sprintf("ckpt/lora-7b-step%06d.pt", i*60), weights(256, uint64(i)), time.Duration(180-30*i)*time.Minute)
	}
}

func seedData(f *folder) {
	f.file(".gitconfig", gitConfig, 24*time.Hour)
	f.file("tokenize/tokenize.py", "import sys\n\nfor line in sys.stdin:\n    print(len(line.split()))\n", 2*time.Hour)
	f.file("tokenize/README.md", "# tokenize\n", 2*time.Hour)
	f.git("tokenize", "init", "-q", "--template=")
	f.git("tokenize", "add", ".")
	f.git("tokenize", "commit", "-q", "-m", "A tokenizer that counts")
	f.file("tokenize/tokenize.py", "import sys\n\n# half done: keep the offsets\nfor line in sys.stdin:\n    print([w for w in line.split()])\n", 26*time.Minute)
	f.file("tokenize/fix_unicode.py", "def fix(s):\n    return s.encode().decode()\n", 25*time.Minute)
	for i := 1; i <= 12; i++ {
		f.file(fmt.Sprintf("results/part-%02d.bin", i), weights(40+i*12, uint64(100+i)), time.Duration(24+i)*time.Minute)
	}
}

func seedInfer(f *folder) {
	f.file("serve/serve.sh", "#!/bin/sh\nexec python -m vllm.entrypoints.openai.api_server --model ~/models/qwen\n", 50*time.Hour)
	f.file("models/qwen/config.json", `{"architectures":["Qwen2ForCausalLM"]}`+"\n", 50*time.Hour)
	f.file("models/qwen/model.safetensors", weights(512, 7), 50*time.Hour)
}

func seedHot(f *folder) {
	f.file("runs/config.json", `{"params":"13B","gpus":8,"tensor_parallel":8}`+"\n", 26*time.Hour)
	for i := 1; i <= 3; i++ {
		f.file(fmt.Sprintf("runs/pretrain-step%06d.pt", i*60), weights(384, uint64(200+i)), time.Duration(20-5*i)*time.Hour)
	}
}

func seedChinese(f *folder) {
	f.file("实验/说明.md", "# 问答微调\n\n数据在“数据集”，结果在“输出”。\n", 2*time.Hour)
	f.file("实验/数据集/训练 集.jsonl", strings.Repeat(`{"问":"今天天气如何？","答":"晴。"}`+"\n", 300), 2*time.Hour)
	f.file("实验/数据集/验证集.jsonl", strings.Repeat(`{"问":"一加一？","答":"二。"}`+"\n", 40), 2*time.Hour)
	f.file("实验/输出/日志-第1轮.txt", "损失 1.92\n损失 1.71\n", 30*time.Minute)
	f.file("实验/输出/微调-问答-step000060.pt", weights(256, 300), 20*time.Minute)
}
