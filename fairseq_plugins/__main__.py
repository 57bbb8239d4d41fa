"""``python -m fairseq_plugins`` is the command ``fairseq-plugins``."""

if __name__ == "__main__":
    from .startup import prepare_command

    prepare_command()

    from .command import main

    main()
