from training.commands.views import CommandPages

app_name = "commands"
urlpatterns = CommandPages.urls()
